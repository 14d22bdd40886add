"""What a DROP at the source does to the table: it raises the fence, parks the table, or does
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakesplice.model.manifest import Manifest
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import AFTER_ALL, BEFORE_ALL, Position
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.sources.dropped_tables import DropDecision, DropHistory, Remedy, due
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Restore


@dataclass(frozen=True, slots=True)
class DropResult:
    """The result of a DROP at a position: the table was parked, or `rows` rows were deleted."""

    position: Position
    parked: bool
    rows: int = 0


def due_decision(
    table: DriverTable, drops: DropHistory, policy: SchemaPolicy, *, insert_only: bool
) -> DropDecision | None:
    """Return what must be done about a DROP before more of the table's topic is read; None if
    nothing must be done.
    """
    if not drops.drops or table.snapshot is None or table.parked is not None:
        return None
    return due(table.source, drops, policy, insert_only=insert_only)


def waits_for_new_columns(table: DriverTable) -> bool:
    """Whether a table was parked because its key changed, and has no rows any more: a DROP or
    TRUNCATE deleted those with the former key. Then it can get other columns. Reads the table;
    blocks.
    """
    parked = table.parked
    if parked is None or parked.code is not ParkCode.KEY_CHANGED or table.manifest.is_merged:
        return False
    if table.schema.keeps_versions:
        return False  # its versions keep their key
    return table.source.fence > BEFORE_ALL and not table.lives_below(AFTER_ALL)


def restart_without_columns(table: DriverTable) -> bool:
    """Remove the table's columns and key, so that its next change defines them. The table continues
    where it stopped, above its fence. Return False if another writer committed first. Blocks.
    """
    sources = {table.source.topic: replace(table.source, snapshot=None)}
    manifest = Manifest(table.generation, sources=sources)
    intent = Restore(table.generation, table.version, None, manifest, {})
    return isinstance(table.commit(intent), Committed)


def handle_drops(
    table: DriverTable, drops: DropHistory, policy: SchemaPolicy, *, insert_only: bool
) -> DropResult | None:
    """Do what the drops of a table require; None if nothing. It may be called again, but not while
    a batch of the table's topic runs. Blocks; errors as `DriverTable.commit` and `with_fence`.
    """
    found = due_decision(table, drops, policy, insert_only=insert_only)
    if found is None:
        return None
    asks = found.remedy is Remedy.ASK and table.lives_below(found.position)
    if asks or found.remedy is Remedy.PARK:
        table.park(ParkReason(found.code, found.detail, table.source.topic))
        return DropResult(found.position, parked=True)
    rows = table.raise_fence(found.fence, found.earlier)
    return DropResult(found.position, parked=False, rows=rows)
