"""Builds a block of images from payloads: checks envelope, key and columns of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.builder import BlockBuilder, mask_of, members_of
from lakesplice.formats.events.blocks.positions import (
    Positions,
    binlog_positions,
    kafka_positions,
    other_tables,
    source_times,
    tidb_positions,
)
from lakesplice.formats.events.debezium.keys import ComparedKey
from lakesplice.formats.events.debezium.suspect_settings import (
    NULLS_IN_JSON,
    cautions_by_types,
    nulls_are_replaced,
)
from lakesplice.formats.events.debezium.verdicts import truncated, truncated_somewhere, unknown_op
from lakesplice.formats.events.event_format import Group
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import MESSAGE
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers, Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.position import Ordering
from lakesplice.model.source_schema import SourceSchema

_OPS = pa.array(["c", "u", "d", "r"])
_OP_OF_PLACE = np.array([Op.CREATE, Op.UPDATE, Op.DELETE, Op.READ], np.int8)


_OF_SNAPSHOT = pa.array(
    ["first", "first_in_data_collection", "true", "last_in_data_collection", "last"]
)
_FIRST_LAST = 3


def snapshot_marks(stated: pa.Array | None, op: Marks) -> Marks | None:
    """Return the marks of `ImageBlock` from `source.snapshot`. An incremental snapshot, which comes
    between other changes, has none.
    """
    if stated is None or not (op == Op.READ).any():
        return None
    positions = pc.index_in(stated, _OF_SNAPSHOT).fill_null(-1).to_numpy()
    marks: Marks = np.where(positions >= _FIRST_LAST, 2, np.where(positions >= 0, 1, 0))
    return np.where(op == Op.READ, marks, 0).astype(np.int8)


def with_reads(op: Marks, source: Mapping[str, pa.Array]) -> Marks:
    """Mark operations on rows of a snapshot as reads, by `source.snapshot`: Debezium before 1.5
    marks them as creates. Creates with a GTID are none: after a blocking snapshot broke off, newer
    ones say of each change that a snapshot has it.
    """
    stated, gtid = source.get("snapshot"), source.get("gtid")
    if stated is None or not (op == Op.CREATE).any():
        return op
    of_snapshot = pc.is_in(stated, _OF_SNAPSHOT).to_numpy(zero_copy_only=False)
    if gtid is not None:
        of_snapshot = of_snapshot & pc.is_null(gtid).to_numpy(zero_copy_only=False)
    return np.where((op == Op.CREATE) & of_snapshot, Op.READ, op).astype(np.int8)


def operations(op: pa.Array) -> tuple[Marks, Mask]:
    """Return operations, and which rows have one that changes rows."""
    positions = pc.index_in(op, _OPS).fill_null(-1).to_numpy()
    return _OP_OF_PLACE[positions], positions >= 0


_NEEDED = {"db": pa.string(), "table": pa.string()}
_OPTIONAL = {
    "ts_ms": pa.int64(),
    "ts_us": pa.int64(),
    "gtid": pa.string(),
    "snapshot": pa.string(),
}


@dataclass(frozen=True)
class PositionSource:
    """Where positions come from: the members of `source`, and the function `positions`, which gets
    these, the operations and the records' offsets.
    """

    needed: Mapping[str, pa.DataType]
    positions: Callable[[Mapping[str, pa.Array], Marks, Integers], Positions]
    ordering: Ordering


def _in_binlog(source: Mapping[str, pa.Array], op: Marks, _offsets: Integers) -> Positions:
    return binlog_positions(source["file"], source["pos"], source["row"], op)


BINLOG = PositionSource(
    {"file": pa.string(), "pos": pa.int64(), "row": pa.int64()}, _in_binlog, Ordering.BINLOG
)


def _by_record(_source: Mapping[str, pa.Array], op: Marks, offsets: Integers) -> Positions:
    return kafka_positions(offsets, op)


BY_RECORD = PositionSource({}, _by_record, Ordering.KAFKA)


def _by_commit(source: Mapping[str, pa.Array], op: Marks, _offsets: Integers) -> Positions:
    return tidb_positions(source[COMMIT], op)


# TiCDC's member of `source`; no connector of Debezium's has it.
COMMIT = "commit_ts"
BY_COMMIT = PositionSource({COMMIT: pa.int64()}, _by_commit, Ordering.TIDB)


def build_block(
    group: Group,
    key: ComparedKey | None,
    context: DecodeContext,
    ledger: VerdictLedger,
    position_source: PositionSource = BINLOG,
    nulls: str = NULLS_IN_JSON,
) -> None:
    """Settle the records whose payloads were read: add changes to the ledger as one block.

    If `key` is None, their keys are all null. Records whose key has other columns than `key` remain
    open. `nulls` is the setting to suspect if nulls became defaults.
    """
    records, payloads, shape = group.records, group.payloads, group.template.shape
    build = BlockBuilder(records, ledger)
    members = _members(payloads, build)
    if position_source is BINLOG and _is_placeless(members["source"], build):
        position_source = BY_RECORD
    source = _source_members(members, build, position_source)
    if source is None:
        return
    op = with_reads(_operations(members, source, build, context), source)
    images = {name: members[name] for name in ("before", "after")}
    present = {name: mask_of(image.is_valid()) for name, image in images.items()}
    if position_source.ordering is not Ordering.TIDB:
        if nulls_are_replaced(source.get("snapshot"), op, build.live):
            ledger.suspect_settings.add(nulls)
        ledger.suspect_settings.update(cautions_by_types(shape.cells, context.history))
    without_row = (op != Op.DELETE) & ~present["after"]
    build.drop_marked(without_row, DeadReason.MISSING_IMAGE, "no row after the change")
    place = _positions(source, op, group, position_source, build)
    raw = {name: members_of(image) for name, image in images.items()}
    check_keys(raw, group.keys, key, op, present, build)
    tables = build.tables(raw, shape.cells, present)
    block = ImageBlock(
        schema=SourceSchema(tuple(cell.field for cell in shape.cells), key.names if key else ()),
        rows=records,
        op=op,
        position_file=place.file,
        position_offset=place.offset,
        source_ts=_times(source, build),
        gtid=_gtids(source, position_source, len(op)),
        before=tables["before"],
        before_present=present["before"],
        after=tables["after"],
        after_present=present["after"],
        ordering=position_source.ordering,
        snapshot=snapshot_marks(source.get("snapshot"), op),
    )
    ledger.add(block.filter(build.live))


def _positions(
    source: Mapping[str, pa.Array],
    op: Marks,
    group: Group,
    position_source: PositionSource,
    build: BlockBuilder,
) -> Positions:
    """Return the positions; a change without one is a dead letter, and one that its template
    doesn't cover remains open.
    """
    positions = position_source.positions(source, op, group.offsets)
    build.refuse_missing_positions(positions)
    if position_source is not BY_RECORD:
        build.leave_beyond(positions, group.template.span)
    return positions


def _gtids(source: Mapping[str, pa.Array], positions: PositionSource, count: int) -> pa.Array:
    unknown = pa.nulls(count, pa.string())
    return source.get("gtid", unknown) if positions is not BY_RECORD else unknown


def _members(payloads: pa.Array, build: BlockBuilder) -> dict[str, pa.Array]:
    """Return the members of the payloads, with a before-image that may be null."""
    members = build.members(payloads)
    # TiCDC's updates with output-old-value=false have none.
    members.setdefault("before", pa.nulls(len(payloads), members["after"].type))
    return members


def _is_placeless(source: pa.Array, build: BlockBuilder) -> bool:
    """Whether the first event has no position in a binlog, like Flink CDC's; events that differ
    from it in this remain open.
    """
    if "file" not in source.type.names:
        return True
    if source.type.field("file").type != pa.string():
        return False
    placeless = mask_of(pc.equal(source.field("file"), "").fill_null(False))
    if not placeless.any():
        return False
    first = bool(placeless[0])
    build.leave(np.flatnonzero((placeless != first) & build.live))
    return first


def _source_members(
    members: dict[str, pa.Array], build: BlockBuilder, position_source: PositionSource
) -> dict[str, pa.Array] | None:
    source = members["source"]
    build.drop_marked(mask_of(source.is_null()), DeadReason.NOT_AN_ENVELOPE, "source is null")
    found = members_of(source)
    needed = {**_NEEDED, **position_source.needed}
    for name, type_ in needed.items():
        if name not in found or found[name].type != type_:
            everything = np.ones(len(source), np.bool_)
            build.drop_marked(
                everything,
                DeadReason.MISSING_POSITION,
                f"no source.{name} of the {position_source.ordering}",
            )
            return None
    return {
        name: column
        for name, column in found.items()
        if name in needed or _OPTIONAL.get(name) == column.type
    }


def _operations(
    members: dict[str, pa.Array],
    source: dict[str, pa.Array],
    build: BlockBuilder,
    context: DecodeContext,
) -> Marks:
    for row, flaw in other_tables(source["db"], source["table"], context.table).items():
        if build.live[row] and members["op"][row].as_py() != "m":
            build.drop([row], flaw)
    return settle_operations(members["op"], build, source)


def settle_operations(
    named: pa.Array, build: BlockBuilder, source: Mapping[str, pa.Array] | None
) -> Marks:
    """Return operations; rows whose operation changes no row are settled.

    `source` has the position of a truncation; without it the table can't continue.
    """
    op, known = operations(named)
    for row in map(int, np.flatnonzero(~known & build.live)):
        name = named[row].as_py()
        if name == "m":
            build.ledger.ignore(build.records[[row]], MESSAGE)
            build.leave([row])
        elif name == "t":
            place = {name: column[row].as_py() for name, column in (source or {}).items()}
            build.settle(row, truncated(place) if source else truncated_somewhere())
        else:
            build.drop([row], unknown_op(name))
    return op


def check_keys(
    raw: dict[str, dict[str, pa.Array]],
    keys: pa.Array,
    key: ComparedKey | None,
    op: Marks,
    present: dict[str, Mask],
    build: BlockBuilder,
) -> None:
    """Compare keys with images, and complete deletes that have only a key.

    `raw` and `present` are the images `before` and `after` as they were read.
    """
    deletes = op == Op.DELETE
    bare = deletes & ~present["before"]
    if key is None:
        build.drop_marked(
            bare, DeadReason.MISSING_IMAGE, "a delete without a row before and without a key"
        )
        return
    if (bare & build.live).any():
        _fill_from_keys(raw["before"], keys, key, np.flatnonzero(bare & build.live), build)
        present["before"] = present["before"] | (bare & build.live)
    columns = [_chosen(deletes, raw["before"][name], raw["after"][name]) for name in key.names]
    for name, column in zip(key.names, columns, strict=True):
        build.refuse_nulls(name, column)
    for row in map(int, np.flatnonzero(key.differing(keys, columns) & build.live)):
        verdict = key.compare(keys[row].as_py(), columns, row)
        if isinstance(verdict, Flaw):
            build.drop([row], verdict)
        elif verdict is False:
            build.leave([row])


def _chosen(deletes: Mask, before: pa.Array, after: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(deletes), before, after) if deletes.any() else after


def _fill_from_keys(
    before: dict[str, pa.Array],
    keys: pa.Array,
    key: ComparedKey,
    rows: Integers,
    build: BlockBuilder,
) -> None:
    types = {name: before[name].type for name in key.names}
    values, flaws = key.images([keys[int(row)].as_py() for row in rows], types)
    for place, flaw in flaws.items():
        build.drop([int(rows[place])], flaw)
    mask = np.zeros(len(keys), np.bool_)
    mask[rows] = True
    for name in key.names:
        filled = pa.array(values[name], types[name])
        before[name] = pc.replace_with_mask(before[name], pa.array(mask), filled)


def _times(source: dict[str, pa.Array], build: BlockBuilder) -> pa.Array:
    units = {"ts_us": 1, "ts_ms": 1000}
    stated = [(source[name], unit) for name, unit in units.items() if name in source]
    times, beyond = source_times(*(stated or [(pa.nulls(len(build.live), pa.int64()), 1)]))
    build.drop_marked(beyond, DeadReason.OUT_OF_RANGE, "source.ts_ms is beyond the years 1 to 9999")
    return times
