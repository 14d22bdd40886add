"""From payloads that were read to a block of images: envelope, key and columns, each checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.debezium.cells import convert
from lakesplice.formats.debezium.connect import EventShape
from lakesplice.formats.debezium.keys import (
    KeyShape,
    compare_key,
    disagreeing,
    key_only_images,
)
from lakesplice.formats.debezium.ledger import Ledger
from lakesplice.formats.debezium.source import (
    members_of,
    operations,
    other_tables,
    positions,
    source_times,
)
from lakesplice.formats.debezium.strict import Flaw
from lakesplice.formats.debezium.template import MESSAGE, TOMBSTONE, truncated, unknown_op
from lakesplice.formats.debezium.values import DeadReason, DecodeContext, ImageBlock, Mask, Rows
from lakesplice.model.change import Op
from lakesplice.model.schema import SourceSchema

_NEEDED = {
    "db": pa.string(),
    "table": pa.string(),
    "file": pa.string(),
    "pos": pa.int64(),
    "row": pa.int64(),
}
_OPTIONAL = {"ts_ms": pa.int64(), "ts_us": pa.int64(), "gtid": pa.string()}


@dataclass
class _Build:
    """A block under construction: `live` marks the rows that are still changes."""

    records: Rows
    ledger: Ledger
    live: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.live = np.ones(len(self.records), np.bool_)

    def drop(self, rows: Iterable[int] | Rows, flaw: Flaw) -> None:
        """Make dead letters of rows, unless they are settled already."""
        at = np.fromiter(rows, np.int64)
        self.ledger.kill(self.records[at], flaw)
        self.live[at] = False

    def drop_marked(self, mask: Mask, reason: DeadReason, detail: str) -> None:
        """Make dead letters of marked rows that are still live."""
        self.drop(np.flatnonzero(mask & self.live), Flaw(reason, detail))

    def leave(self, rows: Iterable[int] | Rows) -> None:
        """Take rows out without a verdict: they belong to another block."""
        self.live[np.fromiter(rows, np.int64)] = False


def build_block(
    records: Rows,
    payloads: pa.Array,
    keys: pa.Array,
    shape: EventShape,
    key: KeyShape | None,
    context: DecodeContext,
    ledger: Ledger,
) -> None:
    """Settle the records whose payloads were read: changes go into the ledger as one block.

    `keys` are their keys, all null where `key` is None. Records whose key has other columns than
    `key` stay open.
    """
    build = _Build(records, ledger)
    ledger.ignore(records[_mask(payloads.is_null())], TOMBSTONE)
    build.live[_mask(payloads.is_null())] = False
    members = members_of(payloads)
    source = _source_members(members, build)
    if source is None:
        return
    op = _operations(members, source, build, context)
    images = {name: members[name] for name in ("before", "after")}
    present = {name: _mask(image.is_valid()) for name, image in images.items()}
    build.drop_marked(
        (op != Op.DELETE) & ~present["after"], DeadReason.MISSING_IMAGE, "no row after the change"
    )
    place = positions(source, op)
    build.drop_marked(
        place.missing,
        DeadReason.MISSING_POSITION,
        "source.file, pos and row don't name a binlog position",
    )
    build.drop_marked(
        place.beyond, DeadReason.OUT_OF_RANGE, "source.pos or row is beyond 41 or 21 bits"
    )
    raw = {name: members_of(image) for name, image in images.items()}
    _check_keys(raw, keys, key, op, present, build)
    tables = _tables(raw, shape, build, present)
    block = ImageBlock(
        schema=SourceSchema(tuple(cell.field for cell in shape.cells), key.names if key else ()),
        rows=records,
        op=op,
        position_file=place.file,
        position_offset=place.offset,
        source_ts=_times(source, build),
        gtid=source.get("gtid", pa.nulls(len(op), pa.string())),
        before=tables["before"],
        before_present=present["before"],
        after=tables["after"],
        after_present=present["after"],
    )
    block = block if build.live.all() else block.filter(build.live)
    if len(block):
        ledger.add(block)


def _mask(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def _source_members(members: dict[str, pa.Array], build: _Build) -> dict[str, pa.Array] | None:
    source = members["source"]
    build.drop_marked(_mask(source.is_null()), DeadReason.NOT_AN_ENVELOPE, "source is null")
    found = members_of(source)
    for name, type_ in _NEEDED.items():
        if name not in found or found[name].type != type_:
            everything = np.ones(len(source), np.bool_)
            build.drop_marked(
                everything, DeadReason.MISSING_POSITION, f"no source.{name} of a binlog"
            )
            return None
    return {
        name: column
        for name, column in found.items()
        if name in _NEEDED or _OPTIONAL.get(name) == column.type
    }


def _operations(
    members: dict[str, pa.Array],
    source: dict[str, pa.Array],
    build: _Build,
    context: DecodeContext,
) -> npt.NDArray[np.int8]:
    op, known = operations(members["op"])
    unknown = np.flatnonzero(~known & build.live)
    names = {row: members["op"][int(row)].as_py() for row in map(int, unknown)}
    messages = [row for row, name in names.items() if name == "m"]
    build.ledger.ignore(build.records[np.array(messages, np.int64)], MESSAGE)
    build.leave(messages)
    for row, flaw in other_tables(source, context.table).items():
        if build.live[row]:
            build.drop([row], flaw)
    for row, name in names.items():
        if not build.live[row]:
            continue
        if name == "t":
            halt = truncated()
            build.ledger.stop(int(build.records[row]), halt.code, halt.detail)
            build.leave([row])
        else:
            build.drop([row], unknown_op(name))
    return op


def _check_keys(
    raw: dict[str, dict[str, pa.Array]],
    keys: pa.Array,
    key: KeyShape | None,
    op: npt.NDArray[np.int8],
    present: dict[str, Mask],
    build: _Build,
) -> None:
    """Compare keys with images, and fill in deletes that have only a key."""
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
        if column.null_count:
            detail = f"the key column {name!r} is null in the row"
            build.drop_marked(_mask(column.is_null()), DeadReason.MISSING_KEY, detail)
    for row in map(int, np.flatnonzero(disagreeing(keys, key, columns) & build.live)):
        verdict = compare_key(keys[row].as_py(), key, columns, row)
        if isinstance(verdict, Flaw):
            build.drop([row], verdict)
        elif verdict is False:
            build.leave([row])


def _chosen(deletes: Mask, before: pa.Array, after: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(deletes), before, after) if deletes.any() else after


def _fill_from_keys(
    before: dict[str, pa.Array], keys: pa.Array, key: KeyShape, rows: Rows, build: _Build
) -> None:
    types = {name: before[name].type for name in key.names}
    values, flaws = key_only_images([keys[int(row)].as_py() for row in rows], key, types)
    for place, flaw in flaws.items():
        build.drop([int(rows[place])], flaw)
    mask = np.zeros(len(keys), np.bool_)
    mask[rows] = True
    for name in key.names:
        filled = pa.array(values[name], types[name])
        before[name] = pc.replace_with_mask(before[name], pa.array(mask), filled)


def _tables(
    raw: dict[str, dict[str, pa.Array]], shape: EventShape, build: _Build, present: dict[str, Mask]
) -> dict[str, pa.Table]:
    places = [(image, cell) for image in raw for cell in shape.cells]
    columns = convert([(raw[image][cell.name], cell) for image, cell in places])
    for (image, cell), column in zip(places, columns, strict=True):
        for wrong, reason in column.flaws:
            detail = f"{image}.{cell.name} is no {cell.type.name} written as {cell.encoding}"
            build.drop_marked(wrong & present[image], reason, detail)
    arrays = [column.values for column in columns]
    schema = pa.schema([pa.field(cell.name, cell.type.arrow) for cell in shape.cells])
    width = len(shape.cells)
    return {
        image: pa.Table.from_arrays(arrays[at * width : (at + 1) * width], schema=schema)
        for at, image in enumerate(raw)
    }


def _times(source: dict[str, pa.Array], build: _Build) -> pa.Array:
    times, beyond = source_times(source)
    build.drop_marked(beyond, DeadReason.OUT_OF_RANGE, "source.ts_ms is beyond the years 1 to 9999")
    return times
