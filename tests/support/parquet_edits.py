"""Edits of a Parquet file: which rows of a column get which values, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from tests.support.parquet_values import values_of, with_nulls


@dataclass(frozen=True)
class EditShape:
    """Edits of a column: at which rows, and with what."""

    column: int
    pattern: str
    share: float
    values: str


# Most leave pages as they were: a chunk of which nearly all are touched is encoded whole.
_PATTERNS = ("one", "uniform", "newest", "run", "here and there", "here and there", "all", "edges")


_VALUES = ("known", "new", "null", "new and null", "few")
# Values that a row has already, all of them or some.
PRESENT = ("present", "present and new", "new here, present there")


def edit_shapes(
    columns: int, values: Sequence[str] = _VALUES
) -> st.SearchStrategy[list[EditShape]]:
    """Edits of some of a file's columns."""
    return st.lists(
        st.builds(
            EditShape,
            column=st.integers(0, columns - 1),
            pattern=st.sampled_from(_PATTERNS),
            share=st.sampled_from([0.001, 0.01, 0.1, 0.5]),
            values=st.sampled_from(values),
        ),
        min_size=1,
        max_size=columns,
        unique_by=lambda shape: shape.column,
    )


def drawn_edits(shapes: Sequence[EditShape], table: pa.Table, seed: int) -> Edits:
    """The edits of `table`, which is the file as pyarrow reads it; its row number is left alone."""
    random = np.random.default_rng(seed)
    columns: dict[str, ColumnEdit] = {}
    for shape in shapes:
        field = table.schema.field(shape.column + 1)
        rows = _rows(shape, table.num_rows, random)
        if not len(rows):
            continue
        values = _new_values(shape, table.column(field.name), field, rows, random)
        columns[field.name] = ColumnEdit(rows, values)
    every = [edit.rows for edit in columns.values()]
    return Edits(np.unique(np.concatenate(every)) if every else np.empty(0, np.int64), columns)


def _rows(shape: EditShape, rows: int, random: np.random.Generator) -> Any:
    match shape.pattern:
        case "one":
            return random.integers(0, rows, 1)
        case "newest":
            return np.arange(int(rows * (1 - shape.share)), rows)
        case "run":
            start = int(random.integers(0, rows))
            return np.arange(start, min(rows, start + 1 + int(rows * shape.share)))
        case "here and there":
            tenth = np.arange(rows) * 10 // rows
            return np.flatnonzero((random.random(10) < 0.3)[tenth] & (random.random(rows) < 0.2))
        case "all":
            return np.arange(rows)
        case "edges":
            return np.unique([0, rows // 2, rows - 1])
    return np.flatnonzero(random.random(rows) < shape.share)


def _new_values(
    shape: EditShape, column: pa.ChunkedArray, field: pa.Field, rows: Any, random: Any
) -> pa.Array:
    size = len(rows)
    if shape.values in PRESENT:
        held = _in_one(column.take(pa.array(rows)))
        if shape.values == "present":
            return held
        part = random.random(size) < 0.02
        if shape.values == "new here, present there":
            part = rows < np.quantile(rows, random.random())
        taken = np.where(part, random.integers(0, size, size), np.arange(size))
        return held.take(pa.array(taken))
    values = values_of(field.type, random, size, 5 if shape.values == "few" else size)
    if shape.values == "known":
        return _in_one(column.take(pa.array(random.integers(0, len(column), size))))
    if not field.nullable or shape.values in ("new", "few"):
        return values
    return with_nulls(values, np.ones(size, bool) if shape.values == "null" else _half(size))


def _in_one(values: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(values.unify_dictionaries().chunks)


def _half(size: int) -> Any:
    return np.arange(size) % 2 == 0
