"""The row index of files of other writers, and the search for null and repeated keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.formats.rowindex import Entries
from lakesplice.formats.rowindex.encode import bucket_of
from lakesplice.model.schema import Column, TableSchema
from lakesplice.planning.rows.index_merge import concatenated, part_bits, sorted_entries, take
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.by_hand.adoption.adopted_files import ForeignFile, FoundFile
from lakesplice.table.protocol.ports import UNWATCHED, Progress, Store

ENTRIES_PER_PART = 1 << 22
EXAMPLES_MAX = 5


def indexed(
    store: Store,
    schema: TableSchema,
    files: Mapping[int, FoundFile],
    entries_per_part: int = ENTRIES_PER_PART,
    progress: Progress = UNWATCHED,
) -> Iterator[Entries]:
    """Yield the index entries of all rows in blocks that ascend by key hash; `files` are by file
    group.

    Blocks: reads the key columns once for each range of hashes; a range has about
    `entries_per_part` entries. Raises `UsageError` at the end if keys are null or repeated, with
    their number and examples.
    """
    rows = sum(file.rows for file in files.values())
    bits = part_bits(rows, entries_per_part)
    progress.expect(rows << bits)
    faults = _Faults(store, schema, files)
    for part in range(1 << bits):
        pieces: list[Entries] = []
        for group, file in files.items():
            pieces += _keys_of(
                store=store,
                schema=schema,
                found=file,
                group=group,
                part=part,
                bits=bits,
                faults=faults,
            )
            progress.advance(file.rows)
        entries, first = sorted_entries(concatenated(pieces))
        faults.repeated(take(entries, ~first))
        yield take(entries, first)
    faults.refuse()


def _keys_of(
    store: Store,
    schema: TableSchema,
    found: FoundFile,
    group: int,
    part: int,
    bits: int,
    faults: _Faults,
) -> Iterator[Entries]:
    start = 0
    with ForeignFile(store, found.path, found.constants) as file:
        for row_group in range(file.row_groups):
            keys = file.read(row_group, _key_columns(schema))
            rows = np.arange(start, start + keys.num_rows)
            start += keys.num_rows
            null = _any_null(keys)
            if null.any():
                if part == 0:
                    faults.null(found.path, rows[null])
                keys, rows = keys.filter(pa.array(~null)), rows[~null]
            high, low = key_hash(keys, schema)
            entries = Entries(high, low, np.full(len(high), group, np.int64), rows)
            yield take(entries, bucket_of(high, bits) == part) if bits else entries


def _key_columns(schema: TableSchema) -> list[Column]:
    by_name = {column.name: column for column in schema.columns}
    return [by_name[name] for name in schema.key]


def _any_null(keys: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    null = np.zeros(keys.num_rows, np.bool_)
    for column in keys.columns:
        if column.null_count or pa.types.is_floating(column.type):
            null |= pc.is_null(column, nan_is_null=True).to_numpy()
    return null


@dataclass
class _Faults:
    """Counts rows whose key is null, or the key of another row, and keeps the first of them."""

    store: Store
    schema: TableSchema
    files: Mapping[int, FoundFile]
    nulls: int = 0
    repeats: int = 0
    null_at: list[str] = field(default_factory=list)
    repeated_at: list[tuple[int, int]] = field(default_factory=list)

    def null(self, path: str, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        self.nulls += len(rows)
        room = EXAMPLES_MAX - len(self.null_at)
        self.null_at += [f"row {row} of {path}" for row in rows[:room]]

    def repeated(self, entries: Entries) -> None:
        self.repeats += len(entries.high)
        room = EXAMPLES_MAX - len(self.repeated_at)
        places = zip(entries.group[:room].tolist(), entries.row[:room].tolist(), strict=True)
        self.repeated_at += places

    def refuse(self) -> None:
        if self.nulls:
            raise UsageError(
                "rows have a null or NaN in a key column; delete them or choose another key",
                key=list(self.schema.key),
                rows=self.nulls,
                examples=self.null_at,
            )
        if self.repeats:
            raise UsageError(
                "rows have the same key as another row; delete all but one of each, or choose"
                " another key",
                key=list(self.schema.key),
                rows=self.repeats,
                examples=[self._key_at(group, row) for group, row in self.repeated_at],
            )

    def _key_at(self, group: int, row: int) -> dict[str, object]:
        start, found = 0, self.files[group]
        with ForeignFile(self.store, found.path, found.constants) as file:
            for row_group in range(file.row_groups):
                keys = file.read(row_group, _key_columns(self.schema))
                if row < start + keys.num_rows:
                    key: dict[str, object] = keys.slice(row - start, 1).to_pylist()[0]
                    return key
                start += keys.num_rows
        raise AssertionError(f"{found.path} has fewer rows than were read")
