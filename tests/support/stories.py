"""Stories of tables in one lake, told at the same time: the lives of its service are shared.

A story is a generator that does something to its topics and tables, and yields what must be true
before it goes on. No service runs yet when it begins; it yields `ENDED` to go on once the service
has ended, and what it then waits for comes in the next life. All stories of a run are told before
the first of their tests, whose result is that of its own story alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
import yaml

from lakesplice.testing.oracle import Record
from tests.support.command_line import CommandLine
from tests.support.ledgers import PARTITIONS, Ledger
from tests.support.running import (
    Lake,
    RunningService,
    ends_of,
    require_table,
    stands_at,
)
from tests.support.topics import Sender, make_topics


@dataclass(frozen=True)
class Until:
    """The story goes on once this is true while the service runs, or after it has ended."""

    condition: Callable[[], bool]
    what: str


class End(Enum):
    """The story goes on once the service has ended."""

    ENDED = 0


ENDED = End.ENDED
Step = Until | End
Story = Callable[["Stage"], Iterator[Step]]
# A story that lacks something on this machine is skipped alone, like a test.
_FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
_POLL_SECONDS = 0.1
_STANDSTILL_SECONDS_MAX = 480.0
"""So long no story may go on, from the start of a life: twice what one event may take."""
RUNNING_LIVES = 2
"""So many lives run until no story waits for anything; those after them run with `--once`."""
_LIVES_MAX = 5


@dataclass
class Stage:
    """The lake of all stories, and the way to its broker."""

    lake: Lake
    bootstrap_servers: str
    prefix: str
    sender: Sender
    seed: int
    fixture: Callable[[str], Any]
    """One of the fixtures for a whole run."""
    cli: CommandLine = field(default_factory=CommandLine)

    def configure(self, **sections: Any) -> None:
        """Let the next life have these settings, too; an entry of `tables` replaces one for the
        same tables.
        """
        settings = yaml.safe_load(self.lake.config.read_text())
        for entry in sections.pop("tables", []):
            others = [one for one in settings.get("tables", []) if one["match"] != entry["match"]]
            settings["tables"] = [*others, entry]
        for name, section in sections.items():
            settings[name] = settings.get(name, {})
            for setting, value in section.items():
                more = settings[name].get(setting, []) if isinstance(value, list) else None
                settings[name][setting] = value if more is None else [*more, *value]
        self.lake.config.write_text(yaml.safe_dump(settings))

    def server(self, name: str) -> str:
        """What a story's topics begin with, if they have a dot; others are no tables' topics."""
        return f"{self.prefix}-{name}"

    def ledger(self, name: str, *, with_schemas: bool = True) -> Ledger:
        """A new table with its topic, of a name that no other story uses."""
        made = Ledger(self.server("ledgers"), name, with_schemas=with_schemas)
        make_topics(self.bootstrap_servers, {made.topic: PARTITIONS})
        return made

    def taken_in(self, records: Iterable[Record]) -> Until:
        """The tables hold all before the ends of the records."""
        ends = ends_of(records)
        return Until(lambda: stands_at(self.lake, ends), f"the tables stand at {ends}")

    def parks(self, topic: str) -> Until:
        """The topic's table is parked."""
        return Until(lambda: self.lake.parked(topic) is not None, f"{topic} parks")

    def holds_the_truth(self, table: Ledger) -> None:
        """The table is what its source is, in the real-time view, and not parked."""
        require_table(self.lake, table.topic, table.truth)


@dataclass
class _Teller:
    """How far a story is told: what it waits for, or with what it ended."""

    story: Iterator[Step]
    waits: Step | None = None
    failed: BaseException | None = None

    @property
    def until(self) -> Until | None:
        return self.waits if isinstance(self.waits, Until) else None

    def go_on(self) -> None:
        try:
            self.waits = next(self.story, None)
        except _FAILURES as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """It ends here, and its test fails by this."""
        self.failed, self.waits = error, None

    def may_go_on(self) -> bool:
        """Whether what it waits for is true; a question that fails ends the story."""
        if self.until is None:
            return False
        try:
            return self.until.condition()
        except _FAILURES as error:
            self.fail(error)
            return False


class Told:
    """The stories with how each ended."""

    def __init__(self, stage: Stage, stories: Iterable[Story]) -> None:
        self._lake, self._seed = stage.lake, stage.seed
        self._tellers = {story: _Teller(story(stage)) for story in stories}
        self._lives = 0
        self._tell()

    def require(self, story: Story) -> None:
        """The story was told to its end."""
        failed = self._tellers[story].failed
        if failed is not None:
            failed.add_note(f"seed={self._seed}; repeat with --seed {self._seed}")
            raise failed

    def _tell(self) -> None:
        for teller in self._tellers.values():
            teller.go_on()
        while any(teller.waits for teller in self._tellers.values()):
            self._lives += 1
            assert self._lives <= _LIVES_MAX, "a story asks for too many lives"
            self._live()
            for teller in self._tellers.values():
                if teller.waits is ENDED:
                    teller.go_on()

    def _live(self) -> None:
        """One life of the service, as long as a story waits for something in it."""
        once = self._lives > RUNNING_LIVES
        try:
            with self._lake.running(*(["--once"] if once else [])) as service:
                if not once:
                    self._follow(service)
                    service.terminate()
                service.ends_well()
            # What such a life was to do is done now, or never.
            while once and (ready := [t for t in self._tellers.values() if t.may_go_on()]):
                for teller in ready:
                    teller.go_on()
            self._give_up("it ended")
        except AssertionError as error:
            for teller in self._tellers.values():
                if teller.waits is not None:
                    teller.fail(error)

    def _follow(self, service: RunningService) -> None:
        """Tell the stories on until each has ended or waits for the end of the service."""
        pause, moved = threading.Event(), time.monotonic()
        while any(teller.until for teller in self._tellers.values()):
            assert service.is_running, f"the service ended: {service.tail()}"
            asked = time.monotonic()
            ready = [one for one in self._tellers.values() if one.may_go_on()]
            for teller in ready:
                teller.go_on()
            if ready:
                moved = time.monotonic()
                continue
            if time.monotonic() > moved + _STANDSTILL_SECONDS_MAX:
                self._give_up(f"nothing more in {_STANDSTILL_SECONDS_MAX} s: {service.tail()}")
            # The service needs the processor, too.
            pause.wait(max(_POLL_SECONDS, 3 * (time.monotonic() - asked)))

    def _give_up(self, why: str) -> None:
        for teller in self._tellers.values():
            if teller.until is not None:
                teller.fail(AssertionError(f"not before: {teller.until.what}: {why}"))


_STORIES: dict[Callable[..., None], Story] = {}


def story(tell: Story) -> Callable[[Told], None]:
    """A test that the story was told to its end, together with all others of the run."""

    def test(told: Told) -> None:
        told.require(tell)

    test.__name__, test.__doc__, test.__module__ = tell.__name__, tell.__doc__, tell.__module__
    _STORIES[test] = tell
    return test


def stories_of(items: Iterable[pytest.Item]) -> list[Story]:
    """The stories of which these tests are."""
    functions = [item.function for item in items if isinstance(item, pytest.Function)]
    return [_STORIES[function] for function in functions if function in _STORIES]
