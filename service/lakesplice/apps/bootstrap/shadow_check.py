"""Compares a shadow with its database before it replaces the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakesplice.apps.bootstrap.fill_tools import FillTools
from lakesplice.apps.table_commands.work import VERIFIED
from lakesplice.apps.verifying.catch_up import CatchUp, all_stand_beyond, stands_beyond
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.apps.verifying.stored_sums import StoredSums, place_in_lake
from lakesplice.apps.verifying.verification import (
    VerificationRequest,
    VerificationTools,
    verify_table,
)
from lakesplice.model.names import TableName
from lakesplice.model.progress.shadow_plan import ShadowPlan
from lakesplice.storage.source.binlog_places import BinlogPlace
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.stores import AnyStore
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.shadow_store import ShadowStore, close_all_shadows, open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot, open_snapshot

_POLL_SECONDS = 1.0
_ROWS_MAX = 1_000


@dataclass
class ShadowCatchUp(CatchUp):
    """Feeds a shadow until it has everything that its connector sent before it passed a place.

    That is so if every partition is past the place, or if the shadow is fed once more after any
    record of the connector from beyond the place was seen: the connector sends changes in the
    binlog's order.
    """

    feed: Callable[[], None] = field(default=lambda: None)

    def wait(self, table: Store, topic: str, place: BinlogPlace) -> bool:
        """Block until the shadow is past a place; return False if that takes too long."""
        until = self.clock.monotonic() + self.seconds_max
        while True:
            state = open_snapshot(table).manifest.sources[topic]
            was_sent = stands_beyond(state, place) or self.was_seen(topic, place)
            self.feed()
            state = open_snapshot(table).manifest.sources[topic]
            if was_sent or all_stand_beyond(state, place):
                return True
            if self.clock.monotonic() >= until:
                return False
            self.clock.wait(_POLL_SECONDS)


@dataclass(frozen=True)
class ShadowCheck:
    """Compares shadows of a lake's tables with a database; `connect` opens a connection to it, and
    `read_limit` limits how fast it is read.
    """

    lake: AnyStore
    connect: Callable[[], SourceConnection]
    read_limit: ReadLimit
    wait_seconds: float

    def report(
        self,
        name: TableName,
        plan: ShadowPlan,
        feed: Callable[[], None],
        *,
        insert_only: bool = False,
    ) -> TableReport:
        """Compare a shadow of the table `name`. Blocks; `feed` applies the topic's records to the
        shadow up to the topic's present end.
        """
        clock = self.read_limit.clock
        catch_up = ShadowCatchUp(self.lake, clock, self.wait_seconds, name, feed=feed)
        kept = StoredSums(place_in_lake(self.lake, name.path, plan.shadow), clock)
        store = ShadowStore(self.lake.within(name.path), plan.shadow)
        with self.connect() as connection:
            access = VerificationTools(
                self.lake, connection, self.read_limit, catch_up, kept, store=store
            )
            request = VerificationRequest(insert_only=insert_only, rows_max=_ROWS_MAX)
            return verify_table(access, name, plan.topic, request)


def shadow_check(tools: FillTools) -> ShadowCheck:
    """Return a check with a command's limits."""
    bounds, verify = tools.required_database().bounds, tools.settings.verify
    rate = bounds.rows_per_second or verify.rows_per_second
    read_limit = ReadLimit(tools.clock, rate, bounds.threads_running_max)
    return ShadowCheck(tools.lake, tools.connect, read_limit, verify.wait)


def note_shadow(tools: FillTools, name: TableName, plan: ShadowPlan, report: TableReport) -> None:
    """Record in the table's history, if there is a table, that its shadow differs from the
    database.
    """
    if report.outcome in (ComparisonOutcome.EQUAL, ComparisonOutcome.NOT_COMPARED):
        return
    if find_snapshot(tools.lake.within(name.path)) is not None:
        tools.give(name, VERIFIED, report.as_arguments | {"shadow": plan.shadow})


def give_up_shadows(lake: AnyStore, name: TableName) -> int:
    """Close all shadows of a table, and delete what their comparisons kept; return their number."""
    store = lake.within(name.path)
    for shadow in open_shadows(store):
        place_in_lake(lake, name.path, shadow).delete()
    return close_all_shadows(store)


def left_out(report: TableReport) -> str:
    """Say which columns of an equal shadow weren't compared, and why; empty if all were."""
    columns = (f"{name}: {reason}" for name, reason in sorted(report.not_compared.items()))
    reasons = "; ".join(columns)
    return f"not compared: {reasons}" if reasons else ""


def why_kept(report: TableReport) -> str:
    """Return why a shadow doesn't replace the table, and what to do."""
    count = len(report.differences) + report.unexamined
    match report.outcome:
        case ComparisonOutcome.DIFFERENT:
            first = report.differences[0]
            key = ", ".join(f"{column}={value}" for column, value in first.key.items())
            return (
                f"{count} rows differ from the database, the first is {key} ({first.kind}); the "
                f"table is unchanged. Give --again to fill it once more, or --from bootstrap"
            )
        case ComparisonOutcome.UNSETTLED:
            return (
                f"{report.unsettled + report.unexamined} rows differ, but their changes may not "
                f"have arrived yet; run the command again once the connector has sent them"
            )
        case _:
            return (
                f"it can't be compared with the database: {report.reason}; give --no-verify to "
                f"let it replace the table in any case"
            )
