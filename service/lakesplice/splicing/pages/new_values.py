"""Sets new values among decoded ones, in the type that a chunk's pages decode to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.model.arrays import Integers, Mask
from lakesplice.planning.rows.edits import ColumnEdit, Edits, apply_edits
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.structures.source import SourceFile


def laid_over(values: pa.Array, rows: Integers, new: pa.Array) -> pa.Array:
    """Return `values` with `new` at `rows`; both arrays have the same type."""
    table = apply_edits(pa.table({"x": values}), Edits(rows, {"x": ColumnEdit(rows, new)}))
    column = table.column(0)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def stored(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values cast to the type that the chunk's pages decode to."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values if values.type == kind else values.cast(kind)


def fitting(source: SourceFile, edit: ColumnEdit, kind: pa.DataType, column: str) -> pa.Array:
    """Return an edit's values as `stored` does; raises `UsageError` if one doesn't fit the type."""
    try:
        return stored(edit.values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise UsageError(
            "new values don't fit a column's type",
            path=source.name,
            column=column,
            given=str(edit.values.type),
            wanted=str(kind),
            cause=str(error),
        ) from None


def null_refused(source: SourceFile, column: str) -> UsageError:
    """Return the error for a null in a column that doesn't allow null."""
    return UsageError(
        "a column that doesn't allow null can't get one", path=source.name, column=column
    )


def refused(source: SourceFile, row_group: int, column: int, reason: Reason) -> UnsupportedError:
    """Return the error for a chunk that can't be spliced."""
    return UnsupportedError(
        "a column chunk can't be spliced; rewrite the file",
        path=source.name,
        place=source.file_part(row_group, column).part,
        reason=str(reason),
    )


def bits(values: pa.Array) -> pa.Array:
    """Return values that are equal exactly if their bits are equal, so a NaN equals itself."""
    if not pa.types.is_floating(values.type):
        return values
    return values.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[values.type.bit_width])


def differing(found: pa.Array, given: pa.Array) -> Mask:
    """Mark where two arrays of one flat type differ, also where only one of them is null.

    Floating-point values are compared bit by bit: 0.0 and -0.0 differ, a NaN equals itself.
    """
    equal = pc.fill_null(pc.equal(bits(found), bits(given)), False)
    if found.null_count and given.null_count:
        equal = pc.or_(equal, pc.and_(found.is_null(), given.is_null()))
    marks: Mask = ~np.asarray(equal)
    return marks
