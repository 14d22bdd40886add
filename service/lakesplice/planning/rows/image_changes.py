"""Converts row images, as a source format decoded them, to changes in the table's layout.

Values are converted only if they were sent under an earlier or narrower type of their column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op, changes_schema
from lakesplice.model.column_values import promoted
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.backfill import filled_column
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmaps
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.partial_fold import encoded_registers
from lakesplice.planning.rows.row_digest import (
    both_digests,
    column_words,
    contiguous,
    row_digest,
)


def to_changes(
    images: ImageBlock,
    schema: TableSchema,
    mapping: Mapping[str, Column],
    position_file: Integers | None = None,
    *,
    partial: bool = False,
    presences: ColumnPresences | None = None,
) -> pa.Table:
    """Return the images as changes in `changes_schema(schema)`, row for row.

    `mapping` maps source names to stored columns (`schema/evolution.py`). Other columns of `schema`
    are null, also in digests and changed sets; but a column that was added with a fill has the fill
    in images from before. Values of an earlier or narrower type of a column are converted to its
    present type. A delete has its before-image, a changed set without columns, and no digest of its
    own. `position_file` replaces that of the images, which doesn't include the epoch. In `partial`
    images the columns outside `mapping` are unknown, and so are digests and changed sets; a delete
    counts as whole. In a shard a column with a fill exists from where `presences` says.
    `UsageError` if a column is missing or isn't of its stored type, or a row lacks the image that
    its operation needs.
    """
    delete = images.op == Op.DELETE
    _require_images(images, delete)
    file = images.position_file if position_file is None else position_file
    fills = (
        {} if partial else _fills(file, images.position_offset, schema, mapping, presences or {})
    )
    before = _stored(images.before, mapping, schema, fills)
    after = _stored(images.after, mapping, schema, fills)
    values = _values(before, after, delete)
    high, low = key_hash(values, schema)
    user = dict(zip(values.column_names, values.columns, strict=True))
    columns = {
        KEY_HIGH: pa.array(high),
        KEY_LOW: pa.array(low),
        OP: pa.array(images.op, pa.int8()),
        POSITION_FILE: pa.array(file, pa.int64()),
        POSITION_OFFSET: pa.array(images.position_offset, pa.int64()),
        SOURCE_TS: images.source_ts,
        **user,
    }
    if not partial:
        columns |= _ComparedImages(before, after, delete, images.before_present, schema).columns()
    if partial and schema.positions is not None:
        registers = encoded_registers(file, images.position_offset, delete, user, schema)
        columns[schema.positions.name] = registers
    return _in_layout(columns, changes_schema(schema), len(delete))


def _in_layout(columns: Mapping[str, pa.Array], layout: pa.Schema, rows: int) -> pa.Table:
    """Return the columns of a layout; those that are missing are null."""
    found = [columns.get(field.name, pa.nulls(rows, field.type)) for field in layout]
    return pa.Table.from_arrays(found, schema=layout)


@dataclass(frozen=True)
class _ComparedImages:
    """Each row's images before and after its change, in stored columns; `delete` and `has_before`
    have an entry per row.
    """

    before: pa.Table
    after: pa.Table
    delete: Mask
    has_before: Mask
    schema: TableSchema

    def columns(self) -> dict[str, pa.Array]:
        """Return what only whole images show: digests, and which columns differ."""
        before_digest, row_digests = self._digests()
        return {BEFORE_DIGEST: before_digest, ROW_DIGEST: row_digests, CHANGED: self._changed()}

    @cached_property
    def _equal(self) -> set[str]:
        """The columns that are the same in all rows of both images. Floating-point numbers aren't
        asked: -0.0 would be equal to 0.0.
        """
        columns = zip(self.after.column_names, self.before.columns, self.after.columns, strict=True)
        return {
            name
            for name, old, new in columns
            if not pa.types.is_floating(new.type) and old.equals(new)
        }

    def _digests(self) -> tuple[pa.Array, pa.Array]:
        schema, delete = self.schema, self.delete
        unknown = pa.nulls(len(delete), pa.int64())
        if not self.has_before.any():
            return unknown, pa.array(row_digest(self.after, schema), mask=delete)
        if delete.all():
            return pa.array(row_digest(self.before, schema), mask=~self.has_before), unknown
        old, new = both_digests(self.before, self.after, schema, self._equal)
        return pa.array(old, mask=~self.has_before), pa.array(new, mask=delete)

    def _changed(self) -> pa.Array:
        """Return the bitmap of columns that differ between the images, or that every change
        rewrites; null if one of the images is missing.
        """
        schema = self.schema
        rows = np.zeros((len(self.delete), bitmap_bytes(schema)), dtype=np.uint8)
        compared = self.has_before & ~self.delete
        if compared.any():
            by_name = {column.name: column for column in schema.columns}
            for name in self.after.column_names:
                column = by_name[name]
                if column.of_change or name in self._equal:
                    continue
                old, new = self.before.column(name).chunk(0), self.after.column(name).chunk(0)
                differ = _differ(old, new, column.type)
                rows[:, column.id // 8] |= differ.astype(np.uint8) << np.uint8(column.id % 8)
            for column in schema.columns:
                # Also a column that the source no longer sends: it becomes null, which no digest
                # shows.
                if column.of_change:
                    rows[:, column.id // 8] |= np.uint8(1 << column.id % 8)
            rows[~compared] = 0
        return bitmaps(rows, self.has_before | self.delete)


def _require_images(images: ImageBlock, delete: Mask) -> None:
    present = np.where(delete, images.before_present, images.after_present)
    if not present.all():
        raise UsageError(
            "a row lacks the image its operation needs; decoding makes it a dead letter",
            row=int(np.argmin(present)),
        )


def _fills(
    file: Integers,
    offset: Integers,
    schema: TableSchema,
    mapping: Mapping[str, Column],
    presences: ColumnPresences,
) -> Mapping[Column, pa.Array]:
    """Return the columns that images from before they were added get all the same."""
    sent = {column.id for column in mapping.values()}
    since = {i: presences[i].first if i in presences else at for i, at in schema.filled.items()}
    return {
        column: filled_column(column, since[column.id], file, offset)
        for column in schema.columns
        if column.id in schema.filled and column.id not in sent
    }


def _stored(
    images: pa.Table,
    mapping: Mapping[str, Column],
    schema: TableSchema,
    fills: Mapping[Column, pa.Array],
) -> pa.Table:
    """Take the mapped columns under their stored names, in the schema's order, each as one
    array.
    """
    fields, arrays = [], []
    at = {name: number for number, name in enumerate(images.column_names)}
    for source_name, column in sorted(mapping.items(), key=lambda item: item[1].id):
        if source_name not in at:
            raise UsageError("a row image lacks a column of its schema", column=source_name)
        values = contiguous(images.column(at[source_name]))
        try:
            values = promoted(values, column.type.arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageError(
                "a row image's column is not of its stored type; decode it as that type",
                column=source_name,
                expected=str(column.type.arrow),
                found=str(values.type),
            ) from error
        fields.append(pa.field(column.name, column.type.arrow))
        arrays.append(values)
    for column, filled in fills.items():
        fields.append(pa.field(column.name, column.type.arrow))
        arrays.append(filled)
    held = {field.name: values for field, values in zip(fields, arrays, strict=True)}
    for name, of in schema.copies.items():
        if of in held:
            fields.append(pa.field(name, held[of].type))
            arrays.append(held[of])
    missing = [name for name in schema.key if name not in {field.name for field in fields}]
    if missing:
        raise UsageError("a row image lacks key columns", columns=missing)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _values(before: pa.Table, after: pa.Table, delete: Mask) -> pa.Table:
    """Return the after-images, for deletes the before-images."""
    if not delete.any():
        return after
    if delete.all():
        return before
    chosen = pa.array(delete)
    return pa.Table.from_arrays(
        [
            pc.if_else(chosen, old.chunk(0), new.chunk(0))
            for old, new in zip(before.columns, after.columns, strict=True)
        ],
        schema=after.schema,
    )


def _differ(old: pa.Array, new: pa.Array, kind: ColumnType) -> Mask:
    """Compare two columns by their bits, so that -0.0 differs from 0.0, as in digests."""
    differ: Mask
    if kind.kind in (Primitive.STRING, Primitive.BINARY):
        differ = np.asarray(pc.not_equal(old, new).fill_null(False))
    else:
        pairs = zip(column_words(old, kind), column_words(new, kind), strict=True)
        differ = np.logical_or.reduce([first != second for first, second in pairs])
    if not old.null_count and not new.null_count:
        return differ
    old_null, new_null = np.asarray(old.is_null()), np.asarray(new.is_null())
    return np.where(old_null | new_null, old_null != new_null, differ)
