"""Builds a block of images from Maxwell's events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.builder import BlockBuilder, mask_of, members_of
from lakesplice.formats.events.blocks.positions import (
    Positions,
    binlog_positions,
    kafka_positions,
    source_times,
)
from lakesplice.formats.events.event_format import Group
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.maxwell.before_values import changed_columns
from lakesplice.formats.events.maxwell.ddl_types import KnownTypes
from lakesplice.formats.events.maxwell.keys import MaxwellKey
from lakesplice.formats.events.maxwell.types import cell_of
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.encoding import Cell
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import ROW_BITS, Ordering
from lakesplice.model.source_schema import SourceField, SourceSchema

OPS = {
    "insert": Op.CREATE,
    "update": Op.UPDATE,
    "delete": Op.DELETE,
    "bootstrap-insert": Op.READ,
}
_SECOND = 1_000_000
_PLACE = r"^.+:[0-9]{1,15}$"
# A transaction's last row has `commit` instead of its number; it comes after all others.
_LAST_ROW = (1 << ROW_BITS) - 1


@dataclass(frozen=True)
class _Images:
    """Row images, one for each row of a group; `moved` marks updates of the key."""

    before: pa.Table
    after: pa.Table
    before_present: Mask
    moved: Mask


def build_block(
    group: Group,
    key: MaxwellKey | None,
    types: KnownTypes,
    context: DecodeContext,
    ledger: VerdictLedger,
) -> None:
    """Settle the records that were read: add changes to the ledger as one block.

    Without `key` their keys are null. Records whose key has other columns remain open, and so do
    records at positions where other types than `types` are in force.
    """
    build = BlockBuilder(group.records, ledger)
    members = build.members(group.payloads)
    op = _operations(members, context, build)
    if key is not None:
        unlike = key.unlike(group, members["primary_key_columns"])
        build.leave(np.flatnonzero(unlike & build.live))
    positions, ordering = _positions(members, group, op, build)
    build.refuse_missing_positions(positions)
    if ordering is Ordering.BINLOG:
        build.leave_beyond(positions, group.template.span)
    times, beyond = source_times((members["ts"], _SECOND))
    build.drop_marked(beyond, DeadReason.OUT_OF_RANGE, "ts is beyond the years 1 to 9999")
    names = key.names if key else ()
    images = _images(group, members, op, names, build)
    cells = group.template.shape.cells
    unknown = pa.nulls(len(op), pa.string())
    block = ImageBlock(
        schema=SourceSchema(
            tuple(cell.field for cell in cells), names, omitted=_omitted(cells, types)
        ),
        rows=group.records,
        op=op,
        position_file=positions.file,
        position_offset=positions.offset,
        source_ts=times,
        gtid=members["gtid"] if ordering is Ordering.BINLOG else unknown,
        before=images.before,
        before_present=images.before_present,
        after=images.after,
        after_present=op != Op.DELETE,
        ordering=ordering,
    )
    ledger.add(block.filter(build.live).moved(images.moved[build.live]))


def _omitted(cells: Sequence[Cell], types: KnownTypes) -> tuple[SourceField, ...]:
    """Return the table's columns that an image lacks."""
    sent = {cell.name for cell in cells}
    return tuple(cell_of(name, type_).field for name, type_ in types.omitted(sent))


def _operations(
    members: Mapping[str, pa.Array], context: DecodeContext, build: BlockBuilder
) -> Marks:
    """Return the operations; make dead letters of events of other tables, kinds, or without a
    row.
    """
    build.refuse_other_tables(members["database"], members["table"], context.table)
    op = build.operations(members["type"], OPS)
    build.drop_marked(
        mask_of(members["data"].is_null()), DeadReason.MISSING_IMAGE, "the event has no row"
    )
    return op


def _positions(
    members: dict[str, pa.Array], group: Group, op: Marks, build: BlockBuilder
) -> tuple[Positions, Ordering]:
    stated = mask_of(members["position"].is_valid())
    if not (stated & build.live).any():
        return kafka_positions(group.offsets, op), Ordering.KAFKA
    _stop_at(
        ~stated & build.live,
        "the change has no position, but others of the topic have one; this happens with rows of"
        " a bootstrap; set output_binlog_position=false in Maxwell, so that the order of the"
        " records counts, use a topic with one partition, and reload the table",
        build,
    )
    commits = members["commit"].fill_null(False)
    row = pc.coalesce(members["xoffset"], pc.if_else(commits, _LAST_ROW, pa.scalar(None)))
    _stop_at(
        mask_of(row.is_null()) & build.live,
        "the position has no xoffset, so all changes of one statement share it; set"
        " output_xoffset=true in Maxwell",
        build,
    )
    file, offset = _file_and_offset(members["position"])
    positions = binlog_positions(file, offset.cast(pa.int64()), row.cast(pa.int64()), op)
    # No other row has the number that the last row gets.
    taken = members["xoffset"].fill_null(0).to_numpy() >= _LAST_ROW
    return Positions(
        positions.file, positions.offset, positions.missing, positions.beyond | taken
    ), Ordering.BINLOG


def _file_and_offset(position: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split positions at their last colon; null if there is none or the text isn't a position.

    A regular expression with groups that may end at any colon would cost four times as much.
    """
    form = pc.match_substring_regex(position, _PLACE)
    halves = pc.split_pattern(
        pc.if_else(form, position, pa.scalar(None, pa.string())), ":", max_splits=1, reverse=True
    )
    return pc.list_element(halves, 0), pc.list_element(halves, 1)


def _stop_at(marked: Mask, detail: str, build: BlockBuilder) -> None:
    """Stop at the first marked row: nothing from it on is applied."""
    rows = np.flatnonzero(marked)
    if len(rows):
        build.ledger.stop(int(build.records[rows[0]]), ParkCode.ORDER_UNKNOWN, detail)
        build.leave(rows)


def _images(
    group: Group,
    members: dict[str, pa.Array],
    op: Marks,
    key: tuple[str, ...],
    build: BlockBuilder,
) -> _Images:
    """Make the before-image: `data` with the values in `old`. Columns in `old` changed, also to or
    from null.
    """
    cells = group.template.shape.cells
    has_old = mask_of(members["old"].is_valid()) & (op == Op.UPDATE)
    raw = {name: members_of(members[name]) for name in ("data", "old")}
    for name in key:
        build.refuse_nulls(name, raw["data"][name])
    tables = build.tables(raw, cells, {"data": build.live.copy(), "old": has_old})
    after = before = tables["data"]
    moved = np.zeros(len(op), np.bool_)
    if has_old.any():
        changed = changed_columns(group, raw["old"])
        columns = []
        for name in after.column_names:
            differs = changed[name] & has_old
            old, new = tables["old"][name].chunk(0), after[name].chunk(0)
            columns.append(pc.if_else(pa.array(differs), old, new) if differs.any() else new)
            if name in key:
                moved |= differs
                build.drop_marked(
                    differs & mask_of(columns[-1].is_null()),
                    DeadReason.MISSING_KEY,
                    f"the key column {name!r} is null in the row before",
                )
        before = pa.Table.from_arrays(columns, schema=after.schema)
    return _Images(before, after, has_old | (op == Op.DELETE), moved & build.live)
