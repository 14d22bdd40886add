"""DROPs that a topic of schema changes reports, and what a table does when its source table was
dropped.

A DROP has a position in the binlog. As a fence at that position it deletes older rows, even if it
comes late, and leaves the rows of a table that is created later under the name. Positions alone
show whether this is done: a fence at or above it exists. If positions don't show what a DROP
follows, only one that is read while the driver runs parks the table: it isn't known whether older
ones were handled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

import pyarrow as pa

from lakesplice.formats.events.ddl import DropKind, TableDrop
from lakesplice.formats.events.values.fences import Fence
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.sources.gtids import GtidStreams

ADVICE = (
    "set schema_changes.drop_table to evolve (rows from before are deleted) or ignore (they are"
    " kept) and give `lakesplice unpark`"
)
_REMEDY_FOR_MOVED_ROWS = (
    "give `lakesplice reset --anew`, or, to keep its rows, set schema_changes.drop_table to"
    " ignore and give `lakesplice unpark`"
)


_KEEPING = (Behaviour.LENIENT, Behaviour.IGNORE)


@dataclass(frozen=True, slots=True)
class DropHistory:
    """A table's drops, in the order in which they were read.

    `ordered`: positions in the topic of schema changes only rose. Drops numbered from `known_since`
    on were read while the driver ran; of these, those from `open_since` on aren't handled yet.
    """

    drops: tuple[TableDrop, ...] = ()
    ordered: bool = True
    known_since: int = 0
    open_since: int = 0


class Remedy(Enum):
    """`FENCE`: delete rows at or below the position. `ASK`: park the table if such a row lives,
    else set the fence. `PARK`: park the table.
    """

    FENCE = auto()
    ASK = auto()
    PARK = auto()


@dataclass(frozen=True, slots=True)
class DropDecision:
    """What a DROP requires, and the reason if the table parks. `earlier` are others below it that
    aren't handled yet: its fence is enough for rows, and a version ends at the first DROP above it.
    """

    remedy: Remedy
    fence: Fence
    detail: str
    code: ParkCode = ParkCode.DROPPED
    earlier: tuple[Fence, ...] = ()

    @property
    def position(self) -> Position:
        """The position of the DROP."""
        return self.fence.position


def due(
    source: SourceState, history: DropHistory, policy: SchemaPolicy, *, insert_only: bool = False
) -> DropDecision | None:
    """Return what a table's drops require, None if nothing; `insert_only`: its rows can't be
    deleted.
    """
    undone = _undone(source, history)
    if undone is not None:
        return undone
    if source.ordering is None:
        return None  # nothing was read yet
    reached = max((s.position for s in source.partitions.values()), default=BEFORE_ALL)
    blind = _blind(source, history, insert_only=insert_only)
    # If positions can't be compared, the table's position doesn't show whether a drop is new.
    seen = BEFORE_ALL if blind else reached
    wanted = [drop for drop in history.drops if _counts(drop, seen, policy)]
    if blind:
        new = [drop for drop in wanted if drop.number >= history.open_since]
        return _parking(new[-1], blind) if new else None
    if not wanted:
        return None
    newest = max(wanted, key=lambda drop: (drop.position, drop.kind is DropKind.CAME))
    if newest.position <= source.fence:
        return None
    if _contradicts(newest, source, reached):
        return _parking(
            newest,
            f"its transaction {newest.gtid} is newer than all that the table has, and its"
            f" position is below {reached}: another server seems to have taken over",
        )
    between = (drop for drop in wanted if source.fence < drop.position < newest.position)
    earlier = tuple(_fence(drop) for drop in sorted(between, key=lambda drop: drop.position))
    if newest.kind is not DropKind.DROP:
        return replace(_moved(newest, policy), earlier=earlier)
    detail = f"the table was dropped at the source, at {newest.position}; {ADVICE}"
    return DropDecision(
        Remedy.ASK if policy.parks_dropped else Remedy.FENCE,
        _fence(newest),
        detail,
        earlier=earlier,
    )


def kept(history: DropHistory, policy: SchemaPolicy) -> tuple[TableDrop, ...]:
    """Return the drops that aren't handled yet and whose rows are kept, for now or for good."""
    dropped = [drop for drop in history.drops if drop.kind is DropKind.DROP and not drop.lives_on]
    new = [drop for drop in dropped if drop.number >= history.open_since]
    if policy.handles_drops_later:
        return tuple(drop for drop in new if not drop.again)
    return () if policy.drops or policy.parks_dropped else tuple(new)


def open_after(history: DropHistory, policy: SchemaPolicy) -> int:
    """Return the number from which on drops are open, once those that were read were handled. A
    drop whose rows are kept until a new table has the name stays open.
    """
    waiting = kept(history, policy) if policy.handles_drops_later else ()
    last = max((drop.number for drop in history.drops), default=-1)
    return min((drop.number for drop in waiting), default=last + 1)


def _counts(drop: TableDrop, reached: Position, policy: SchemaPolicy) -> bool:
    """Whether the policy lets a DROP do anything to a table with changes up to a position."""
    if drop.kind is not DropKind.DROP:
        waits = drop.kind is DropKind.SET_ASIDE and not drop.again
        return not (drop.lives_on or waits) and _behaviour(drop, policy) not in _KEEPING
    if drop.lives_on or not (policy.drops or policy.parks_dropped):
        return False
    # A row after it belongs to a new table of this name, whether or not its creation was
    # read.
    return not policy.handles_drops_later or drop.again or drop.position < reached


def _behaviour(drop: TableDrop, policy: SchemaPolicy) -> Behaviour:
    return policy.drop_partition if drop.kind is DropKind.PARTITION else policy.rename_table


def _moved(drop: TableDrop, policy: SchemaPolicy) -> DropDecision:
    """What to do about a statement that moved rows: rows are missing, unless there were none."""
    kind = "drop_partition" if drop.kind is DropKind.PARTITION else "rename_table"
    detail = (
        f"{drop.moved} at the source, at {drop.position}, which moved rows without events; set"
        f" schema_changes.{kind} to evolve (rows from before are deleted; have the connector take"
        " a new snapshot of the table) or ignore (they are kept) and give `lakesplice unpark`"
    )
    remedy = Remedy.PARK if drop.kind is DropKind.CAME else Remedy.ASK
    if _behaviour(drop, policy) is not Behaviour.EXCEPTION:
        remedy = Remedy.FENCE
    return DropDecision(remedy, _fence(drop), detail, ParkCode.ROWS_MOVED)


def _undone(source: SourceState, history: DropHistory) -> DropDecision | None:
    """A DROP whose rows were deleted before the source reported that the table still exists."""
    for drop in history.drops:
        if drop.lives_on and drop.number >= history.known_since and drop.position == source.fence:
            return DropDecision(
                Remedy.PARK,
                _fence(drop),
                f"the table was dropped at the source, at {drop.position}, and its rows were"
                " deleted; then its copy got its name, so they should have been kept; reload the"
                " table",
            )
    return None


def _blind(source: SourceState, history: DropHistory, *, insert_only: bool) -> str:
    """Return why no fence can be set, empty if one can."""
    if insert_only:
        return "it is insert-only, so its rows can't be deleted"
    if source.ordering is not Ordering.BINLOG:
        return f"its changes are ordered by {source.ordering}, which has no positions in a binlog"
    if source.epochs or not history.ordered:
        return "another server took over since the first change, so positions can't be compared"
    return ""


def _parking(drop: TableDrop, why: str) -> DropDecision:
    if drop.kind is not DropKind.DROP:
        kind = "drop_partition" if drop.kind is DropKind.PARTITION else "rename_table"
        remedy = _REMEDY_FOR_MOVED_ROWS.replace("drop_table", kind)
        detail = f"{drop.moved} at the source, at {drop.position}; {why}; {remedy}"
        return DropDecision(Remedy.PARK, _fence(drop), detail, ParkCode.ROWS_MOVED)
    detail = (
        f"the table was dropped at the source, at {drop.position}; {why}; {_REMEDY_FOR_MOVED_ROWS}"
    )
    return DropDecision(Remedy.PARK, _fence(drop), detail)


def _fence(drop: TableDrop) -> Fence:
    return Fence(drop.position, drop.gtid, dropped=True, moment=drop.moment)


def _contradicts(drop: TableDrop, source: SourceState, reached: Position) -> bool:
    """Whether a DROP is newer than all known changes by its GTID, and older by its position."""
    if drop.gtid is None or drop.position > reached:
        return False
    own = GtidStreams.of(pa.array([drop.gtid], pa.string()), {}).at(0)
    if own is None:
        return False
    stream, number = own
    met = [_number(state.gtids, stream) for state in source.partitions.values()]
    return number > max(met, default=-1)


def _number(gtids: Mapping[str, int], stream: str) -> int:
    return gtids.get(stream, -1)
