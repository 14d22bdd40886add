"""Compares the tables of a lake one after the other, each with the database that feeds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lakesplice.apps.lake import table_names
from lakesplice.apps.verifying.catch_up import CatchUp
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.apps.verifying.stored_sums import FilePlace, StoredSums, place_in_lake
from lakesplice.apps.verifying.verification import (
    VerificationRequest,
    VerificationTools,
    verify_table,
)
from lakesplice.config import Settings
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.stores import AnyStore
from lakesplice.storage.system import SystemClock
from lakesplice.table.driver.last_results import keep_result
from lakesplice.table.protocol.ports import Clock, Progress
from lakesplice.table.protocol.snapshot import open_snapshot

ShowProgress = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class SourceAccess:
    """How to reach the databases: the settings, and a password that isn't in them."""

    settings: Settings
    password: str = ""
    certificates: str | None = None
    clock: Clock = field(default_factory=SystemClock)

    def address(self, topic: str) -> DatabaseAddress:
        """Return the server that a topic's connector reads; raises `UsageError` if no setting names
        it.
        """
        databases = self.settings.verify.databases
        named = [prefix for prefix in databases if topic.startswith(f"{prefix}.")]
        address = databases[max(named, key=len)] if named else self.settings.doctor.database
        if address is None:
            raise UsageError(
                "no setting names the database that feeds the topic; set doctor.database, or"
                " verify.databases with the connector's topic.prefix",
                prefix=topic.partition(".")[0],
            )
        return DatabaseAddress.of_server(address, self.password)

    @contextmanager
    def connection(self, topic: str) -> Iterator[SourceConnection]:
        """Connect to a topic's database. Blocks."""
        with SourceConnection(self.address(topic), self.clock, self.certificates) as connection:
            yield connection


def verify_lake(
    lake: AnyStore,
    sources: SourceAccess,
    patterns: Sequence[str],
    request: VerificationRequest,
    show: ShowProgress,
    state: Path | None = None,
) -> Iterator[TableReport]:
    """Compare the tables whose `database.table` matches a pattern, or all tables without a pattern.
    Yields a report per table and topic. Blocks; raises `UsageError` if no table matches.
    """
    names = [name for name in table_names(lake) if name.matches(patterns)]
    if not names:
        raise UsageError(
            "the lake has no such table; `lakesplice tables` lists them", patterns=list(patterns)
        )
    if state is not None and len(names) > 1:
        raise UsageError("a state file is for one table; name it", tables=len(names))
    for name in names:
        manifest = open_snapshot(lake.within(name.path)).manifest
        if not manifest.sources:
            reason = "it is fed by hand, so no database has its rows"
            yield TableReport(str(name), ComparisonOutcome.NOT_COMPARED, reason)
        for topic in manifest.sources:
            with show(str(name)) as progress:
                yield verify_topic(lake, sources, name, topic, request, progress, state=state)


def verify_topic(
    lake: AnyStore,
    sources: SourceAccess,
    name: TableName,
    topic: str,
    request: VerificationRequest,
    progress: Progress,
    *,
    state: Path | None = None,
) -> TableReport:
    """Compare a table with the database that feeds it through a topic. The lake stores the result,
    and the progress if the comparison is interrupted, unless a file is given for the progress.
    Blocks.
    """
    verify, clock = sources.settings.verify, sources.clock
    place = place_in_lake(lake, name.path, topic) if state is None else FilePlace(state)
    with sources.connection(topic) as connection:
        access = VerificationTools(
            lake=lake,
            connection=connection,
            read_limit=ReadLimit(clock, verify.rows_per_second, verify.threads_running_max),
            catch_up=CatchUp(lake, clock, verify.wait, name),
            kept=StoredSums(place, clock),
            progress=progress,
        )
        keeps = sources.settings.insert_only(TableName.from_topic(topic))
        report = verify_table(access, name, topic, replace(request, insert_only=keeps))
    if state is None:
        keep_result(lake, report.result(topic, clock.now_ms()))
    return report
