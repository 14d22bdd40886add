"""What a command works on: a table, and the right to commit to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakesplice.apps.record_reading import reading_of
from lakesplice.config import Settings
from lakesplice.errors import UsageError
from lakesplice.formats.events import TypeHistory
from lakesplice.model.manifest import RunRef
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import ParkReason
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.table.explaining.record_values import TopicRecords
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.reset import TopicStart
from lakesplice.table.protocol.commit import Committed, Conflict, Planned, commit_with_retries
from lakesplice.table.protocol.intents import Intent, Redirect
from lakesplice.table.protocol.ports import UNWATCHED, Clock, Entropy, Progress, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest

_ATTEMPTS_MAX = 20


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command in words, and as values of JSON."""

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class CommandTable:
    """A table, and the right to commit to it: `commit_as` makes an intent its next version.

    `history_parameters` are written into the history with every commit. `history` returns the types
    that a source described; `starts` returns the first offsets of topics, or of the records written
    at a moment (in milliseconds) or later; `records` reads topics; `feed` brings a shadow of the
    table up to offsets of its topic. These four exist only in a driver. `origin` returns the source
    table of a topic, and `progress` is told how far the work is. `settings` are those of the table;
    a command without a configuration has none. Not thread-safe.
    """

    store: Store
    snapshot: Snapshot
    generation: int
    clock: Clock
    entropy: Entropy
    commit_as: Callable[[Intent, Mapping[str, str]], Committed | Conflict]
    history_parameters: Mapping[str, str]
    history: Callable[[SourceState], TypeHistory | None] | None = None
    starts: Callable[[Sequence[str], EpochMs | None], Mapping[str, TopicStart]] | None = None
    records: TopicRecords | None = None
    origin: Callable[[str], TableName] = TableName.from_topic
    progress: Progress = UNWATCHED
    feed: Callable[[DriverTable, Offsets], None] | None = None
    settings: Settings | None = None

    def commit(self, intent: Intent) -> Committed | Conflict:
        """Commit, and keep the new version; after a conflict, the version that won the race."""
        outcome = self.commit_as(intent, self.history_parameters)
        if isinstance(outcome, Committed):
            self.snapshot = outcome.snapshot
        else:
            self.snapshot = latest(self.store, self.snapshot)
        return outcome

    def commit_with_retries(self, plan: Callable[[], Planned | None]) -> Planned | None:
        """See `lakesplice.table.protocol.commit.commit_with_retries`."""
        return commit_with_retries(plan, self.commit, self.retries())

    def retries(self) -> Retries:
        """Return a counter of attempts for something that other writers of the table may
        prevent.
        """
        return Retries(self.clock, self.entropy, _ATTEMPTS_MAX)

    def reading(self, topic: str) -> RecordReading:
        """Return how records of one of the table's topics are read; `UsageError` without
        settings.
        """
        if self.settings is None:
            raise UsageError(
                "no service runs, so the command must know how to read records; give the service's "
                "--config, or start the service and run the command again"
            )
        source = self.snapshot.manifest.sources.get(topic)
        if source is None:
            raise UsageError("no topic of this name feeds the table", topic=topic)
        history = None if self.history is None else self.history(source)
        return reading_of(self.settings, self.origin(topic), history)

    def redirected(
        self,
        *,
        source: SourceState | None = None,
        parked: ParkReason | None = None,
        runs: tuple[RunRef, ...] | None = None,
    ) -> Redirect:
        """Return a new direction of the table; `source` and `runs` stay unchanged if they are
        None.
        """
        return Redirect(self.generation, self.snapshot.version, source, parked, runs)
