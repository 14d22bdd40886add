"""Reads the lake's rows of a compared table: their sums by bucket, and some rows by key.

The values are read and their checksums computed again: the stored row digests show what ingest
wrote, not what the files hold now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.model.names import IS_DELETED, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.planning.source_rows.checksums import BucketSums, bucket_of, row_texts
from lakesplice.table.protocol.ports import Progress
from lakesplice.table.reading.table import Table

_SYSTEM = (POSITION_FILE, POSITION_OFFSET, IS_DELETED)


@dataclass(frozen=True)
class KeyedRows:
    """Rows with the source's column names; `at` maps the row text of each key to the row's number.

    A tombstone counts only if its key has no live row, since a row that moved to another partition
    leaves one. `twice` has the keys with more than one live row, which is always an error.
    """

    rows: pa.Table
    at: dict[str, int]
    twice: frozenset[str] = frozenset()

    def position(self, key: str) -> Position:
        """Return the position of a row's newest change."""
        row = self.at[key]
        file, offset = (self.rows.column(name)[row].as_py() for name in _SYSTEM[:2])
        return Position(file, offset)

    def is_deleted(self, key: str) -> bool:
        """Return whether the row is a tombstone."""
        return bool(self.rows.column(IS_DELETED)[self.at[key]].as_py())


def lake_sums(
    lake: Table, table: ComparedTable, buckets: Collection[int] | None, progress: Progress
) -> tuple[BucketSums, int]:
    """Return the sums of the live rows and their number; of the given buckets, or of all. Blocks:
    one scan of the real-time view.
    """
    sums, count = BucketSums(table.compared.quick), 0
    wanted = _mask(buckets)
    for rows in _read(lake, table, None, include_deleted=False):
        of = table.compared.buckets(rows)
        if wanted is not None:
            inside = wanted[of]
            rows, of = rows.filter(pa.array(inside)), of[inside]
        sums.add(of, table.compared.hashes(rows))
        count += rows.num_rows
        progress.advance(rows.num_rows)
    return sums, count


def rows_in_buckets(lake: Table, table: ComparedTable, buckets: Collection[int]) -> KeyedRows:
    """Return the rows and tombstones in these buckets. Blocks: one scan."""
    wanted = _mask(buckets)
    assert wanted is not None
    return _keyed(
        table,
        [
            rows.filter(pa.array(wanted[table.compared.buckets(rows)]))
            for rows in _read(lake, table, None, include_deleted=True)
        ],
    )


def rows_of_keys(lake: Table, table: ComparedTable, keys: pa.Table) -> KeyedRows:
    """Return the rows and tombstones of these keys, whose columns have the source's names.
    Blocks.
    """
    first = table.compared.key[0].name
    condition = pc.field(table.stored[first]).isin(keys.column(first).unique())
    wanted = pa.array(row_texts(keys, table.compared.key).to_list())
    found = []
    for rows in _read(lake, table, condition, include_deleted=True):
        texts = pa.array(row_texts(rows, table.compared.key).to_list(), pa.string())
        found.append(rows.filter(pc.is_in(texts, wanted)))
    return _keyed(table, found)


def _read(
    lake: Table, table: ComparedTable, condition: pc.Expression | None, *, include_deleted: bool
) -> Iterator[pa.Table]:
    reader = lake.scan(
        "real_time",
        table.to_read,
        condition,
        include_deleted=include_deleted,
        include_system=include_deleted,
    )
    for batch in reader:
        if batch.num_rows:
            yield table.of_source(pa.Table.from_batches([batch]))


def _keyed(table: ComparedTable, parts: Sequence[pa.Table]) -> KeyedRows:
    if not parts:
        return KeyedRows(pa.table({}), {})
    rows = pa.concat_tables(parts).combine_chunks()
    keys = row_texts(rows, table.compared.key).to_list()
    deleted = rows.column(IS_DELETED).to_pylist()
    at = {key: row for row, key in enumerate(keys) if deleted[row]}
    alive = [(key, row) for row, key in enumerate(keys) if not deleted[row]]
    at |= dict(alive)
    counts = Counter(key for key, _ in alive)
    return KeyedRows(rows, at, frozenset(key for key, count in counts.items() if count > 1))


def _mask(buckets: Collection[int] | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    if buckets is None:
        return None
    mask = np.zeros(len(BucketSums().counts), np.bool_)
    mask[list(buckets)] = True
    return mask


__all__ = ["KeyedRows", "bucket_of", "lake_sums", "rows_in_buckets", "rows_of_keys"]
