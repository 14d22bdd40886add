"""Builds a block of images from Canal's messages: one row for each row of `data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.builder import BlockBuilder, mask_of, members_of
from lakesplice.formats.events.blocks.positions import (
    Positions,
    kafka_positions,
    source_times,
    tidb_positions,
)
from lakesplice.formats.events.canal.absent_columns import lengths_of
from lakesplice.formats.events.canal.types import declared_cell
from lakesplice.formats.events.event_format import Group
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.encoding import Cell
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers, Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.position import Ordering
from lakesplice.model.source_schema import SourceField, SourceSchema

# INIT is a row of a snapshot; some programs that write Canal's messages send it.
OPS = {"INSERT": Op.CREATE, "UPDATE": Op.UPDATE, "DELETE": Op.DELETE, "INIT": Op.READ}
_MILLI = 1000


def build_block(
    group: Group,
    key: tuple[str, ...],
    types: Mapping[str, str],
    context: DecodeContext,
    ledger: VerdictLedger,
) -> None:
    """Settle the messages that were read: add changes to the ledger as one block.

    Messages with another key or other types remain open. If a row doesn't have these types, its
    whole message becomes a dead letter.
    """
    build = BlockBuilder(group.records, ledger)
    members = build.members(group.payloads)
    _refuse_others(members, key, types, context, build)
    op = build.operations(members["type"], OPS)
    times, beyond = source_times((members["es"], _MILLI))
    build.drop_marked(beyond, DeadReason.OUT_OF_RANGE, "es is beyond the years 1 to 9999")
    lengths = lengths_of(members["data"])
    build.drop_marked(lengths == 0, DeadReason.MISSING_IMAGE, "the message has no row")
    old_lengths = lengths_of(members["old"])
    # An update without `old` doesn't mention the key, so the key is unchanged.
    has_old = (op == Op.UPDATE) & mask_of(members["old"].is_valid())
    uneven = np.where(has_old, old_lengths != lengths, old_lengths > 0)
    detail = "old doesn't have one entry for each row of an update, or the message isn't an update"
    build.drop_marked(uneven, DeadReason.MISSING_IMAGE, detail)
    chosen = np.flatnonzero(build.live)
    if len(chosen):
        omitted = _omitted(tuple(types), context)
        _add(
            group=group,
            members=members,
            op=op,
            times=times,
            key=key,
            omitted=omitted,
            messages=build,
            chosen=chosen,
        )


def _refuse_others(
    members: dict[str, pa.Array],
    key: tuple[str, ...],
    types: Mapping[str, str],
    context: DecodeContext,
    build: BlockBuilder,
) -> None:
    build.refuse_other_tables(members["database"], members["table"], context.table)
    names = pc.binary_join(members["pkNames"], "\0").fill_null("")
    alike = mask_of(pc.equal(names, "\0".join(key)))
    stated = members_of(members["mysqlType"])
    for name, type_ in types.items():
        alike &= mask_of(pc.equal(stated[name], type_).fill_null(False))
    if "isDdl" in members:
        alike &= ~mask_of(members["isDdl"].fill_null(True))
    build.leave(np.flatnonzero(~alike & build.live))


def _omitted(names: tuple[str, ...], context: DecodeContext) -> tuple[SourceField, ...]:
    """Return the declared columns that a message lacks.

    If only some columns are declared, because only their types need it, the table has further ones.
    """
    declared = context.declared or {}
    if not all(name in declared for name in names):
        return ()
    absent = (name for name in declared if name not in names)
    return tuple(declared_cell(name, declared[name]).field for name in absent)


def _add(
    group: Group,
    members: dict[str, pa.Array],
    op: Marks,
    times: pa.Array,
    key: tuple[str, ...],
    omitted: tuple[SourceField, ...],
    messages: BlockBuilder,
    chosen: Integers,
) -> None:
    """Add a block with the rows of the chosen messages."""
    taken = pa.array(chosen)
    data, old = members["data"].take(taken), members["old"].take(taken)
    lengths = lengths_of(data)
    owner = np.repeat(chosen, lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ops = op[owner]
    build = BlockBuilder(group.records[owner], messages.ledger)
    build.drop_marked(
        mask_of(data.flatten().is_null()), DeadReason.MISSING_IMAGE, "a row of the message is null"
    )
    raw = {"data": members_of(data.flatten())}
    for name in key:
        build.refuse_nulls(name, raw["data"][name])
    cells = group.template.shape.cells
    table = build.tables(raw, cells, {"data": np.ones(len(owner), np.bool_)})["data"]
    has_old = np.repeat(mask_of(old.is_valid()), lengths)
    before, moved = _key_before(
        table=table, old=old, has_old=has_old, ops=ops, key=key, group=group, build=build
    )
    where, ordering = _positions(members, group, owner, ops, place)
    build.refuse_missing_positions(where)
    # The whole message is one change: one statement made its rows.
    spoilt = np.isin(owner, owner[~build.live])
    unknown = pa.nulls(len(owner), pa.string())
    block = ImageBlock(
        schema=_schema(cells, key, omitted, ops),
        rows=build.records,
        op=ops,
        position_file=where.file,
        position_offset=where.offset,
        source_ts=times.take(pa.array(owner)),
        gtid=unknown,
        before=before,
        before_present=ops == Op.DELETE,
        after=table,
        after_present=ops != Op.DELETE,
        ordering=ordering,
    )
    messages.ledger.add(block.filter(~spoilt).moved(moved[~spoilt]))


def _schema(
    cells: Sequence[Cell], key: tuple[str, ...], omitted: tuple[SourceField, ...], ops: Marks
) -> SourceSchema:
    fields = tuple(cell.field for cell in cells)
    if set(key) == {cell.name for cell in cells} and bool((ops == Op.DELETE).all()):
        return SourceSchema(fields, key, key_alone=True)
    return SourceSchema(fields, key, omitted=omitted)


def _positions(
    members: dict[str, pa.Array],
    group: Group,
    owner: Integers,
    ops: Marks,
    place: Integers,
) -> tuple[Positions, Ordering]:
    if "_tidb" in members:
        commit = members_of(members["_tidb"])["commitTs"].take(pa.array(owner))
        return tidb_positions(commit, ops), Ordering.TIDB
    return kafka_positions(group.offsets[owner], ops, place), Ordering.KAFKA


def _key_before(
    table: pa.Table,
    old: pa.Array,
    has_old: Mask,
    ops: Marks,
    key: tuple[str, ...],
    group: Group,
    build: BlockBuilder,
) -> tuple[pa.Table, Mask]:
    """Return the rows with their former keys, and a mask of rows whose key changed.

    Only the key is read from `old`. It is never null, so an absent column is unchanged. `told`
    marks the rows whose message has an `old`.
    """
    moved = np.zeros(len(ops), np.bool_)
    updates = np.flatnonzero((ops == Op.UPDATE) & has_old)
    if not len(updates) or not key:
        return table, moved
    # An update has an entry for each row, other changes have none.
    items = old.flatten()
    at = np.full(len(ops), -1, np.int64)
    at[updates] = np.arange(len(updates))
    rows = items.take(pa.array(at, mask=at < 0))
    stated = mask_of(rows.is_valid())
    detail = "the entry of a row in old is null"
    build.drop_marked((ops == Op.UPDATE) & has_old & ~stated, DeadReason.MISSING_IMAGE, detail)
    cells = [cell for cell in group.template.shape.cells if cell.name in key]
    raw = {"old": members_of(rows)}
    before = build.tables(raw, cells, {"old": stated})["old"]
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name in key:
        was, is_ = before[name].chunk(0), table[name].chunk(0)
        differs = pc.and_(was.is_valid(), pc.not_equal(was, is_)).fill_null(False)
        columns[name] = pc.if_else(differs, was, is_)
        moved |= mask_of(differs)
    return pa.table(columns, schema=table.schema), moved
