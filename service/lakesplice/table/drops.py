"""What becomes of a table that was dropped at its source: a fence, a parking, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.model.manifest import ParkReason
from lakesplice.model.position import Position
from lakesplice.planning.drops import DropsTold, Due, Remedy, due
from lakesplice.planning.policy import SchemaPolicy
from lakesplice.table.held import HeldTable


@dataclass(frozen=True, slots=True)
class Dealt:
    """What a DROP at a place came to: the table parked, or `rows` went."""

    place: Position
    parked: bool
    rows: int = 0


def calls_for(
    table: HeldTable, told: DropsTold, policy: SchemaPolicy, *, insert_only: bool = False
) -> Due | None:
    """Return what is to be dealt with before the table's topic is read on, None if nothing."""
    if not told.drops or table.snapshot is None or table.parked is not None:
        return None
    return due(table.source, told, policy, insert_only=insert_only)


def deal_with(
    table: HeldTable, told: DropsTold, policy: SchemaPolicy, *, insert_only: bool = False
) -> Dealt | None:
    """Do what the drops of a table call for, None if that is nothing. May be called again, but not
    while a batch of the table's topic runs. Blocks; errors as `HeldTable.commit` and `with_fence`.
    """
    found = calls_for(table, told, policy, insert_only=insert_only)
    if found is None:
        return None
    asks = found.remedy is Remedy.ASK and table.lives_below(found.place)
    if asks or found.remedy is Remedy.PARK:
        table.park(ParkReason(found.code, found.detail, table.source.topic))
        return Dealt(found.place, parked=True)
    return Dealt(found.place, parked=False, rows=table.raise_fence(found.place))
