"""Columns that keep their type when the source changes it (`alter_column_type: ignore`).

If a table could take the source's wider type (`type_changes.py`) and the policy forbids it, the
table accepts the values that its own type holds exactly. A record with another value becomes a dead
letter, which can be replayed once the table follows the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.refusals import DeadLetters, DeadReason
from lakesplice.model.arrays import Mask
from lakesplice.model.change import Op
from lakesplice.model.column_values import promoted
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField
from lakesplice.model.types import WHOLE_NUMBERS
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.schema.source_names import column_of
from lakesplice.planning.schema.type_changes import accepts, widened

# Whole numbers in the form that MySQL writes.
_WHOLE_TEXT = r"^(0|-?[1-9][0-9]{0,18})$"


def with_kept_types(decoded: Decoded, schema: TableSchema, policy: SchemaPolicy) -> Decoded:
    """Return decoded records with the columns' own types, if the policy says so."""
    if not policy.keeps_types or not schema.columns:
        return decoded
    blocks = []
    refused: dict[int, str] = {}
    for block in decoded.blocks:
        kept = {
            field.name: column
            for field in block.schema.fields
            if (column := _column_with_kept_type(schema, field)) is not None
        }
        blocks.append(_narrowed(block, kept, refused) if kept else block)
    if not refused:
        return replace(decoded, blocks=tuple(blocks))
    # The whole record becomes a dead letter, even if it has two changes.
    rows = np.array(sorted(refused), np.int64)
    left = [block.filter(~np.isin(block.rows, rows)) for block in blocks]
    return replace(
        decoded,
        blocks=tuple(block for block in left if len(block)),
        dead=_with(decoded.dead, refused),
    )


def _column_with_kept_type(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the column that has to keep its type for the field, if there is one."""
    column = column_of(schema, field)
    if column is None or widened(column, field) is None:
        return None
    ever = [former.column for former in schema.former if former.column.id == column.id]
    return None if any(accepts(known, field) for known in (column, *ever)) else column


def _narrowed(block: ImageBlock, kept: Mapping[str, Column], refused: dict[int, str]) -> ImageBlock:
    before, after = block.before, block.after
    before_present = block.before_present
    for name, column in kept.items():
        old, old_fits = fitting(before.column(name).combine_chunks(), column)
        new, new_fits = fitting(after.column(name).combine_chunks(), column)
        delete = block.op == Op.DELETE
        unfit = block.after_present & ~delete & ~new_fits
        for row in block.rows[unfit].tolist():
            refused.setdefault(
                row,
                f"column={name!r} keeps its type {column.type.name}, which can't hold the value"
                " exactly; to follow the source's type, set schema_changes.alter_column_type:"
                " evolve and replay the dead letter",
            )
        # A before-image that the table's type can't hold counts as unknown.
        before_present = before_present & (old_fits | delete)
        at = before.column_names.index(name)
        before = before.set_column(at, name, old)
        after = after.set_column(at, name, new)
    fields = tuple(
        replace(
            field,
            type=kept[field.name].type,
            source_type=kept[field.name].source_type,
            fill=None,
        )
        if field.name in kept
        else field
        for field in block.schema.fields
    )
    schema = replace(block.schema, fields=fields)
    return replace(block, schema=schema, before=before, after=after, before_present=before_present)


def fitting(values: pa.Array, column: Column) -> tuple[pa.Array, Mask]:
    """Return values in the column's type, null if it can't hold them exactly, and the mask of those
    that it holds; it holds null.
    """
    to = column.type.arrow
    if values.type == to:
        return values, np.ones(len(values), np.bool_)
    source = values
    if pa.types.is_string(values.type) and column.type.kind in WHOLE_NUMBERS:
        written = pc.match_substring_regex(values, _WHOLE_TEXT).fill_null(False)
        values = pc.if_else(written, values, pa.scalar(None, values.type))
    series = pl.Series(values)
    narrow = series.cast(pl.Series(pa.array([], to)).dtype, strict=False)
    found = narrow.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(to)
    back = (
        found.cast(source.type) if pa.types.is_string(source.type) else promoted(found, source.type)
    )
    same = pc.equal(back, source).fill_null(False)
    fits = np.asarray(pc.or_(same, source.is_null()))
    return pc.if_else(pa.array(fits), found, pa.scalar(None, to)), fits


def _with(dead: DeadLetters, refused: Mapping[int, str]) -> DeadLetters:
    known = dict(zip(dead.rows.tolist(), zip(dead.reason, dead.detail, strict=True), strict=True))
    all_ = {**known, **{row: (str(DeadReason.OUT_OF_RANGE), why) for row, why in refused.items()}}
    rows = sorted(all_)
    return DeadLetters(
        np.array(rows, np.int64),
        tuple(all_[row][0] for row in rows),
        tuple(all_[row][1] for row in rows),
    )
