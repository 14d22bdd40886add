"""Reads the lake's rows of a compared table: their sums by bucket, and some rows by key.

The values are read and their checksums computed again: the stored row digests show what ingest
wrote, not what the files hold now.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.model.arrays import Integers, Unsigned
from lakesplice.model.names import IS_DELETED, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.planning.source_rows.checksums import BUCKETS, BucketSums, row_texts
from lakesplice.table.protocol.ports import Progress
from lakesplice.table.reading.table import Table

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
_Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
# Texts of so many rows fit in a processor's cache. Arrow and Polars run in parallel threads.
_ROWS_AT_ONCE = 32_768
_THREADS = 2
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

    def is_alive(self, key: str) -> bool:
        """Return whether there is a row of the key that isn't a tombstone."""
        return key in self.at and not self.rows.column(IS_DELETED)[self.at[key]].as_py()


def lake_sums(
    lake: Table, table: ComparedTable, buckets: Collection[int] | None, progress: Progress
) -> tuple[BucketSums, int]:
    """Return the sums of the live rows and their number; of the given buckets, or of all. Blocks:
    one scan of the real-time view.
    """
    sums, count = BucketSums(table.compared.quick), 0
    work = partial(_hashed, table, None if buckets is None else _mask(buckets))
    for of, hashes in _in_threads(work, _pieces(lake, table)):
        sums.add(of, hashes)
        count += len(of)
        progress.advance(len(of))
    return sums, count


def _pieces(lake: Table, table: ComparedTable) -> Iterator[pa.Table]:
    for rows in _read(lake, table, None, include_deleted=False):
        for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
            yield rows.slice(start, _ROWS_AT_ONCE)


def _hashed(
    table: ComparedTable, wanted: _Mask | None, rows: pa.Table
) -> tuple[Integers, Unsigned]:
    """Return the buckets and the hashes of the rows that are in the wanted buckets."""
    of = table.compared.buckets(rows)
    if wanted is not None:
        inside = wanted[of]
        rows, of = rows.filter(pa.array(inside)), of[inside]
    return of, table.compared.hashes(rows)


def _in_threads(work: Callable[[_Part], _Result], parts: Iterable[_Part]) -> Iterator[_Result]:
    """Yield the result of each part, in order; a few parts are in memory at a time."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="checksums") as pool:
        waiting: deque[Future[_Result]] = deque()
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) > 2 * _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def rows_in_buckets(lake: Table, table: ComparedTable, buckets: Collection[int]) -> KeyedRows:
    """Return the rows and tombstones in these buckets. Blocks: one scan."""
    wanted = _mask(buckets)
    found = [
        rows.filter(pa.array(wanted[table.compared.buckets(rows)]))
        for rows in _read(lake, table, None, include_deleted=True)
    ]
    return _keyed(table, found)


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
        return KeyedRows(table.compared.schema.empty_table(), {})
    rows = pa.concat_tables(parts).combine_chunks()
    keys = row_texts(rows, table.compared.key).to_list()
    deleted = rows.column(IS_DELETED).to_pylist()
    at = {key: row for row, key in enumerate(keys) if deleted[row]}
    alive = [(key, row) for row, key in enumerate(keys) if not deleted[row]]
    at |= dict(alive)
    counts = Counter(key for key, _ in alive)
    return KeyedRows(rows, at, frozenset(key for key, count in counts.items() if count > 1))


def _mask(buckets: Collection[int]) -> _Mask:
    mask = np.zeros(BUCKETS, np.bool_)
    mask[list(buckets)] = True
    return mask
