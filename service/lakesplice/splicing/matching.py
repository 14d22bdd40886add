"""Which row of a file each change is for: by the values of key columns, or by a row position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.fitted_values import as_key, fitted, refuse_rebased
from lakesplice.splicing.pages.memory import AllocatorTrimmer
from lakesplice.splicing.pages.streaming import BUFFER_BYTES, value_bytes
from lakesplice.splicing.structures.footer import read_footer
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.whole_rewrite import arrow_schema, reading

# A batch should be larger than the changes, since each batch is joined with all of them.
_BATCH_ROWS_MIN, _BATCH_ROWS_MAX, _BATCH_BYTES = 1 << 18, 1 << 20, 16 * 1024 * 1024
# Bytes of memory that reading, unpacking and joining take for each byte of a batch.
_FREED_PER_BYTE = 4
_CHANGE, _ROW = "change", "row"


@dataclass(frozen=True, slots=True)
class MatchedChanges:
    """The changes as edits of a file's rows; `unmatched` counts those whose key no row has."""

    edits: Edits
    unmatched: int


def match_by_key(
    source: pa.NativeFile, name: str, changes: pa.Table, key: Sequence[str]
) -> MatchedChanges:
    """Find each change's row by its key: equal values in all columns of `key`; null equals nothing.

    The edits set every other column of `changes` in the rows that were found. Streams the key
    columns of `source`; holds `changes` and some megabytes of keys. Raises `UsageError` if changes
    share a key or lack one, if two rows have the key of a change, and as `fitted` does; raises
    `CorruptFileError` if the file is damaged.
    """
    schema = arrow_schema(source, name)
    _check_names(schema, changes.column_names, list(key), name)
    wanted = pl.DataFrame({at: _key_of(changes, schema, at) for at in key}, strict=False)
    _refuse_bad_keys(wanted, key)
    rows, found = _found(source, name, key, wanted)
    counts = np.bincount(found, minlength=changes.num_rows)
    if len(counts) and counts.max() > 1:
        example = wanted.row(int(counts.argmax()), named=True)
        raise UsageError(
            "rows of the file share a key, so nothing shows which one to change; name more key"
            " columns",
            path=name,
            key=example,
            rows=int(counts.max()),
        )
    edits = _edits(schema, changes, list(key), rows, found, name)
    return MatchedChanges(edits, changes.num_rows - len(rows))


def match_by_position(
    source: pa.NativeFile, name: str, changes: pa.Table, column: str
) -> MatchedChanges:
    """Take each change's row from `column`, a position counted from 0; edit the other columns
    there.

    Raises `UsageError` if a position is null, beyond the file or repeated, and as `fitted` does;
    raises `CorruptFileError` if the file is damaged.
    """
    schema = arrow_schema(source, name)
    if column not in changes.column_names:
        raise UsageError("the changes have no such column", column=column)
    others = [at for at in changes.column_names if at != column]
    _check_names(schema, others, [], name)
    positions = _positions(changes.column(column), column)
    rows_in_file = read_footer(source, name).num_rows
    order = np.argsort(positions, kind="stable")
    rows = positions[order]
    if len(rows) and (rows[0] < 0 or rows[-1] >= rows_in_file):
        beyond = int(rows[0] if rows[0] < 0 else rows[-1])
        raise UsageError(
            "a position is beyond the file; the first row is 0", position=beyond, rows=rows_in_file
        )
    if (twice := np.flatnonzero(rows[1:] == rows[:-1])).size:
        raise UsageError("a position is given twice", position=int(rows[twice[0]]))
    return MatchedChanges(_edits(schema, changes, [column], rows, order, name), 0)


def _check_names(schema: pa.Schema, columns: list[str], key: list[str], name: str) -> None:
    if absent := [at for at in key if at not in columns]:
        raise UsageError("the changes lack a column of the key", columns=absent)
    if len(set(columns)) < len(columns):
        raise UsageError("the changes name a column twice", columns=columns)
    unknown = [at for at in columns if not schema.get_all_field_indices(at)]
    if unknown:
        raise UsageError(
            "the changes have columns that the file lacks; leave them out",
            path=name,
            columns=unknown,
            known=schema.names,
        )
    if double := [at for at in columns if len(schema.get_all_field_indices(at)) > 1]:
        raise UsageError("the file has several columns of one name; rename them", names=double)
    if len(columns) == len(key):
        raise UsageError("the changes have only key columns, so there is nothing to change")


def _key_of(changes: pa.Table, schema: pa.Schema, column: str) -> pl.Series:
    field = schema.field(column)
    return as_key(fitted(changes.column(column), field.with_nullable(True)), column)


def _refuse_bad_keys(wanted: pl.DataFrame, key: Sequence[str]) -> None:
    if empty := [at for at in key if wanted[at].null_count()]:
        raise UsageError("a change has no key, since a key column is null", columns=empty)
    twice = wanted.is_duplicated()
    if twice.any():
        raise UsageError(
            "changes share a key; keep one for each",
            changes=int(twice.sum()),
            key=wanted.filter(twice).row(0, named=True),
        )


def _found(
    source: pa.NativeFile, name: str, key: Sequence[str], wanted: pl.DataFrame
) -> tuple[Integers, Integers]:
    """The matching rows, ascending, and for each the change that has its key."""
    numbered = wanted.with_row_index(_numbering(key, _CHANGE))
    rows, changes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    first = 0
    for batch in _key_batches(source, name, key, len(wanted)):
        frame = pl.DataFrame({at: as_key(batch.column(at), at) for at in key}, strict=False)
        both = frame.with_row_index(_numbering(key, _ROW)).join(numbered, on=list(key), how="inner")
        both = both.sort(_numbering(key, _ROW))
        rows.append(both[_numbering(key, _ROW)].to_numpy().astype(np.int64) + first)
        changes.append(both[_numbering(key, _CHANGE)].to_numpy().astype(np.int64))
        first += batch.num_rows
    return np.concatenate(rows), np.concatenate(changes)


def _numbering(key: Sequence[str], name: str) -> str:
    """A name for the column of row numbers that no key column has."""
    return name + "_" * (1 + max(len(at) for at in key))


def _key_batches(
    source: pa.NativeFile, name: str, key: Sequence[str], changes: int
) -> Iterator[pa.RecordBatch]:
    with reading(name, "key columns"):
        file = pq.ParquetFile(
            source,
            pre_buffer=False,
            buffer_size=BUFFER_BYTES,
            coerce_int96_timestamp_unit="us",
        )
        wanted = min(max(2 * changes, _BATCH_ROWS_MIN), _BATCH_ROWS_MAX)
        rows = min(wanted, max(_BATCH_BYTES // _key_bytes(source, name, key), 1))
        tidying = AllocatorTrimmer()
        for batch in file.iter_batches(rows, columns=list(key)):
            yield batch
            tidying.freed(_FREED_PER_BYTE * batch.nbytes)
        tidying.release()


def _key_bytes(source: pa.NativeFile, name: str, key: Sequence[str]) -> int:
    """The bytes that a decoded key takes, as far as is known."""
    file = SourceFile(source, name)
    leaves = [leaf.column for leaf in file.footer.leaves if leaf.path[0] in key]
    widths = (
        sum(value_bytes(file, row_group, column) for column in leaves)
        for row_group in range(len(file.footer.row_groups))
    )
    return max(widths, default=1)


def _positions(column: pa.ChunkedArray, name: str) -> Integers:
    if not pa.types.is_integer(column.type) or column.null_count:
        raise UsageError(
            "positions must be whole numbers without null", column=name, type=str(column.type)
        )
    try:
        positions: Integers = column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise UsageError("a position is beyond any file", column=name, cause=str(error)) from None
    return positions


def _edits(
    schema: pa.Schema,
    changes: pa.Table,
    leave_out: list[str],
    rows: Integers,
    order: Integers,
    name: str,
) -> Edits:
    taken = pa.array(order)
    columns: dict[str, ColumnEdit] = {}
    for at in changes.column_names:
        if at in leave_out:
            continue
        values = fitted(_one_array(changes.column(at), at, taken), schema.field(at))
        refuse_rebased(values, schema.metadata or {}, at, name)
        columns[at] = ColumnEdit(rows, values)
    return Edits(rows, columns)


def _one_array(column: pa.ChunkedArray, name: str, order: pa.Array) -> pa.Array:
    try:
        values: Any = pc.take(column, order)
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    except (pa.ArrowInvalid, pa.ArrowCapacityError, NotImplementedError) as error:
        raise UsageError(
            "a column's changes don't fit into one Arrow array; split them into several files",
            column=name,
            cause=str(error),
        ) from None
