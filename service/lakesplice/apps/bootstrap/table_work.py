"""The work for one table: start or continue a shadow, fill it, compare it, and swap it in."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from lakesplice.apps.bootstrap.database_fill import DatabaseFill
from lakesplice.apps.bootstrap.files_fill import FilesFill
from lakesplice.apps.bootstrap.fill_request import FillRequest, TableOutcome
from lakesplice.apps.bootstrap.fill_tools import FillTools
from lakesplice.apps.bootstrap.shadow_check import (
    give_up_shadows,
    left_out,
    note_shadow,
    shadow_check,
    why_kept,
)
from lakesplice.apps.bootstrap.topic_fill import TopicFill
from lakesplice.apps.table_commands.work import SWAP
from lakesplice.apps.verifying.report import ComparisonOutcome
from lakesplice.config import Settings
from lakesplice.errors import UsageError
from lakesplice.model.names import APPENDED, TableName
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan
from lakesplice.planning.shape.metadata_columns import RecordOrigin
from lakesplice.planning.shape.shaping import shard_of
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.shadow import (
    SHADOW_PARAMETER,
    VERIFIED_PARAMETER,
    begin_shadow,
    read_shadow_plan,
    shadow_table,
    swap_intent,
    swapped_version,
)
from lakesplice.table.protocol.commit import Committed, create
from lakesplice.table.protocol.shadow_store import close_shadow, open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot


class _Fill(Protocol):
    """A way to fill a shadow with rows."""

    def plan(self) -> ShadowPlan:
        """Return a plan for a new shadow; raises `UsageError` if the table can't be filled this
        way.
        """

    def fill(self, table: DriverTable, plan: ShadowPlan) -> bool:
        """Fill a shadow completely; return whether it equals the source at one moment."""


class TableWork:
    """The work of one table. Not thread-safe."""

    def __init__(
        self, tools: FillTools, request: FillRequest, origin: TableName, topic: Topic
    ) -> None:
        self._tools, self._request = tools, request
        self._origin, self._topic = origin, topic
        self._name = tools.settings.target(origin)
        self._store = tools.lake.within(self._name.path)
        self._began = tools.clock.monotonic()

    def done(self) -> TableOutcome:
        """Do the work, and return the result. Blocks; raises the errors of all parts."""
        if self._request.give_up:
            is_given_up = give_up_shadows(self._tools.lake, self._name) > 0
            return self._outcome("given up" if is_given_up else "exists")
        if self._tools.settings.keeps_versions(self._origin):
            raise UsageError(
                "a history table is filled by its topic alone, since the database keeps no earlier"
                " versions; let the connector take a snapshot",
                table=str(self._name),
            )
        require_one_topic(self._tools.settings, self._origin, self._topic.name)
        if not self._request.filled_from.is_replayed:
            require_keyed_rows(self._tools.settings, self._origin)
        plan = self._open_plan()
        if plan is None and find_snapshot(self._store) is not None and not self._request.rebuild:
            return self._outcome("exists")
        if plan is not None and swapped_version(self._store, plan) is not None:
            close_shadow(self._store, plan.shadow)
            return self._outcome("filled", plan)
        fill = self._fill()
        if plan is None:
            plan = fill.plan()
            if not self._request.dry_run:
                begin_shadow(self._store, plan)
        if self._request.dry_run:
            return self._outcome("planned", plan, rows=max(0, plan.rows))
        return self._filled(fill, plan)

    def _filled(self, fill: _Fill, plan: ShadowPlan) -> TableOutcome:
        tools = self._tools
        table = shadow_table(self._store, plan, tools.clock, tools.entropy)
        policy = tools.settings.table(self._origin)
        table.whole_snapshots = policy is None or policy.whole_snapshots
        is_complete, verified, detail = fill.fill(table, plan), "", ""
        if self._request.verify:
            feed = partial(tools.feed, table, self._name, self._origin)
            keeps = tools.settings.insert_only(self._origin)
            report = shadow_check(tools).report(self._name, plan, feed, insert_only=keeps)
            note_shadow(tools, self._name, plan, report)
            verified, detail = report.outcome.value, left_out(report)
            if report.outcome is not ComparisonOutcome.EQUAL:
                state = "different" if report.outcome is ComparisonOutcome.DIFFERENT else "stopped"
                return self._outcome(state, plan, verified=verified, detail=why_kept(report))
        self._swap(table, plan, verified)
        return self._outcome(
            "filled",
            plan,
            rows=_rows(table),
            is_complete=is_complete,
            verified=verified,
            detail=detail,
        )

    def _fill(self) -> _Fill:
        match self._request.filled_from:
            case FilledFrom.TOPIC | FilledFrom.SNAPSHOT:
                return TopicFill(self._tools, self._request, self._name, self._origin, self._topic)
            case FilledFrom.FILES:
                return FilesFill(self._tools, self._request, self._name, self._origin, self._topic)
            case FilledFrom.DATABASE:
                return DatabaseFill(
                    self._tools, self._request, self._name, self._origin, self._topic
                )

    def _open_plan(self) -> ShadowPlan | None:
        """Return the plan of the existing shadow to continue; None if there is none."""
        if self._request.again and not self._request.dry_run:
            give_up_shadows(self._tools.lake, self._name)
        shadows = open_shadows(self._store)
        plan = read_shadow_plan(self._store, shadows[0]) if shadows else None
        if plan is not None and plan.filled_from is not self._request.filled_from:
            raise UsageError(
                f"the table is being filled from its {plan.filled_from}; continue that, or give "
                f"--again to start again",
                table=str(self._name),
            )
        return plan

    def _swap(self, table: DriverTable, plan: ShadowPlan, verified: str) -> None:
        tools, shadow = self._tools, table.snapshot
        assert shadow is not None
        if find_snapshot(self._store) is None:
            hours = max(1, round(tools.settings.retention(self._origin) / 3600))
            verified_parameter = {VERIFIED_PARAMETER: verified} if verified else {}
            outcome = create(
                self._store,
                swap_intent(self._store, shadow, 0, None, hours),
                clock=tools.clock,
                entropy=tools.entropy,
                parameters={SHADOW_PARAMETER: plan.shadow, **verified_parameter},
            )
            if isinstance(outcome, Committed):
                close_shadow(self._store, plan.shadow)
                return
        tools.give(self._name, SWAP, {"shadow": plan.shadow, "verified": verified})

    def _outcome(
        self,
        state: str,
        plan: ShadowPlan | None = None,
        *,
        rows: int = 0,
        is_complete: bool = False,
        verified: str = "",
        detail: str = "",
    ) -> TableOutcome:
        return TableOutcome(
            table=str(self._origin),
            topic=self._topic.name,
            state=state,
            chunks=0 if plan is None else plan.chunks,
            rows=rows,
            seconds=round(self._tools.clock.monotonic() - self._began, 1),
            is_complete=is_complete,
            verified=verified,
            detail=detail,
        )


def require_one_topic(settings: Settings, origin: TableName, topic: str) -> None:
    """Check that one topic feeds the table; raises `UsageError` if several may."""
    if shard_of(settings.shape(origin), RecordOrigin(topic, origin)):
        raise UsageError(
            "several topics may feed the table, but a shadow has only one; let the connectors "
            "take snapshots of the missing databases",
            table=str(settings.target(origin)),
        )


def require_keyed_rows(settings: Settings, origin: TableName) -> None:
    """Check that the table's rows are identified by a key; raises `UsageError` if they are by the
    places of their changes in the binlog, which rows that are read don't have.
    """
    if settings.key(origin) == APPENDED:
        raise UsageError(
            "the table has no key (mode: append), and rows that are read have no place in the"
            " binlog that would identify them; let the connector take a snapshot, or give"
            " `lakesplice rebuild --from topic`",
            table=str(settings.target(origin)),
        )


def _rows(table: DriverTable) -> int:
    """Return how many rows were read; for a replay how many the shadow has, deleted rows
    included.
    """
    backfill = table.manifest.backfill
    if backfill is not None and backfill.chunks:
        return backfill.rows
    return table.manifest.stored_rows
