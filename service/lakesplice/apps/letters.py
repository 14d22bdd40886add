"""Commands about dead letters: asked of the running driver, or done here if none runs."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakesplice.apps.commands import over_letters
from lakesplice.apps.lake import lake_of
from lakesplice.apps.registry import registry_of
from lakesplice.config import Settings
from lakesplice.errors import FencedError, LakespliceError, UsageError
from lakesplice.formats.events import declare
from lakesplice.model.names import TableName
from lakesplice.planning.late import IntakeRules
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.dead_letters import Chosen
from lakesplice.table.ports import Clock
from lakesplice.table.replay import LetterBox, Letters, Reading
from lakesplice.table.requests import REQUEST_PARAMETER, Answer, Request, ask

REPLAY, DROP = "dlq replay", "dlq drop"
_ID_BITS = 64


@dataclass(frozen=True, slots=True)
class LetterCommand:
    """What is to become of which letters; `why` is for the history."""

    command: str
    chosen: Chosen
    why: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The command as a request's arguments."""
        return {
            "places": sorted(self.chosen.places),
            "reasons": sorted(self.chosen.reasons),
            "why": self.why,
        }

    @classmethod
    def of(cls, request: Request) -> LetterCommand:
        """Read a request's command back; `UsageError` if it is none of letters."""
        if request.command not in (REPLAY, DROP):
            raise UsageError(
                "this driver knows no such request; upgrade it", command=request.command
            )
        given: Mapping[str, Any] = request.arguments
        try:
            places = frozenset((int(number), int(offset)) for number, offset in given["places"])
            reasons = frozenset(str(reason) for reason in given["reasons"])
            return cls(request.command, Chosen(places, reasons), str(given["why"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                "the request's arguments can't be read; ask again", command=request.command
            ) from error

    def told(self, request: Request) -> dict[str, str]:
        """What the executing commit says of it."""
        told = {REQUEST_PARAMETER: request.id, "by": request.asked_by}
        return {**told, "why": self.why} if self.why else told

    def execute(self, box: LetterBox, reading: Reading) -> str:
        """Do it, and return what came of it in words; errors as `LetterBox.replay`."""
        if self.command == DROP:
            return _counted(box.drop(self.chosen), "dropped")
        return _counted(box.replay(self.chosen, reading), "replayed")


def give(
    address: str | Path,
    command: LetterCommand,
    settings: Settings | None,
    seconds_max: float,
    *,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> str:
    """Give a command about the letters of the table at an address; return what came of it.

    `settings` say how records are read where no driver runs, which has its own: without them
    columns would come in that a table leaves out. Blocks for at most about `seconds_max` while a
    driver runs. `RetryableError` if it doesn't answer, `UsageError` if it refuses.
    """
    clock = clock or SystemClock()
    lake, name = lake_of(address)
    expires_ms = clock.now_ms() + round(seconds_max * 1000)
    request = Request(
        f"{SystemEntropy().bits(_ID_BITS):016x}",
        command.command,
        name.path,
        _who(),
        expires_ms,
        command.arguments,
    )
    answered: Answer | None = ask(lake, request, clock, wait)
    if answered is None:
        if command.command == REPLAY and settings is None:
            raise UsageError(
                "no driver runs that knows how records are read; give the service's --config, or"
                " start it and ask again",
                table=str(name),
            )
        return over_letters(
            address,
            lambda box: command.execute(box, reading_of(settings, _origin(box, name))),
            command.told(request),
            clock=clock,
            wait=wait,
        )
    if not answered.done:
        raise UsageError(f"the driver refused: {answered.text}", table=str(name))
    return f"{answered.text} (by the running driver)"


def reading_of(settings: Settings | None, name: TableName) -> Reading:
    """Return how the configuration says that the records of a table of the source are read."""
    if settings is None:
        return Reading(name)
    entry = settings.table(name)
    return Reading(
        name,
        declare(entry.columns) if entry is not None and entry.columns else None,
        settings.format(name),
        mappings=entry.type_mapping if entry else (),
        key=entry.key if entry else (),
        shape=settings.shape(name),
        rules=IntakeRules(settings.not_inserts(name), settings.policy(name)),
        schemas=registry_of(settings.schema_registry),
    )


def _origin(box: LetterBox, name: TableName) -> TableName:
    """The table as its source names it, which the configuration may have another name for."""
    source = box.snapshot.manifest.source
    return name if source is None else TableName.from_topic(source.topic)


def executed(request: Request, box: LetterBox, reading: Reading) -> Answer:
    """Execute a driver's request about letters; a refusal is an answer, too.

    `FencedError` leaves the request to the driver that took over.
    """
    try:
        command = LetterCommand.of(request)
        box.told = command.told(request)
        return Answer(True, command.execute(box, reading))
    except FencedError:
        raise
    except LakespliceError as error:
        return Answer(False, str(error))


def _counted(letters: Letters, word: str) -> str:
    kept = f", {letters.kept} still cannot be read and stay" if letters.kept else ""
    return f"{letters.gone} dead letters {word}{kept}"


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
