"""Finds the rows that differ in buckets whose sums differ, and proves that they do.

Let S be the place in the binlog at which the source was read. A row is proven to differ if its
newest change in the lake isn't after S and the lake has all changes up to S (`catch_up.py`). Any
other row may have changed since, or its change may not have arrived: it is read again, at a new S,
for a few rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lakesplice.apps.verifying.compared_sides import ComparedSides
from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.known_causes import ROLLED_BACK, note_of
from lakesplice.apps.verifying.lake_rows import KeyedRows, rows_in_buckets, rows_of_keys
from lakesplice.apps.verifying.report import Difference, DifferenceKind
from lakesplice.apps.verifying.source_sums import SourceSums, highest, lowest
from lakesplice.model.position import Position
from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.checksums import BUCKETS, BucketSums, row_texts
from lakesplice.planning.source_rows.key_ranges import Bound, KeyRange, range_sql
from lakesplice.planning.source_rows.row_text import rows_of_values
from lakesplice.storage.source.binlog_places import BinlogPlace, SnapshotPlace
from lakesplice.storage.source.rows import Snapshot
from lakesplice.table.reading.table import Table

_ROUNDS = 5
# Of so many rows the server's binlog is looked at, with a statement each.
_EXPLAINED_MAX = 100
# Up to this number, keys are looked up at the source; for more its whole table is read.
_LOOKUPS_MAX = 50_000


@dataclass(frozen=True)
class FoundDifferences:
    """The rows that differ: the proven ones, and the numbers of undecided and of unexamined ones.

    `place` is the place in the binlog at which the source was last read. `keys` has the keys of the
    proven rows, with the source's names; None if there are none.
    """

    proven: tuple[Difference, ...] = ()
    unsettled: int = 0
    unexamined: int = 0
    place: BinlogPlace | None = None
    keys: pa.Table | None = None


@dataclass(frozen=True)
class _SourceRows:
    rows: pa.Table
    at: dict[str, int]
    place: SnapshotPlace


def differing_keys(
    sides: ComparedSides, sums: SourceSums, lake: Table, buckets: Sequence[int]
) -> pa.Table:
    """Return the keys of the rows that differ in these buckets, with the source's column names.
    Blocks.
    """
    table = sides.table
    here = rows_in_buckets(lake, table, buckets)
    names = [column.name for column in table.compared.key]
    if table.by_key and here.rows.num_rows <= _LOOKUPS_MAX:
        there = _looked_up(sides, here.rows.select(names))
        left = _without(there.sums, sums.sums, buckets)
    else:
        there, left = _Hashes(table), list(buckets)
    if left:
        there.add_all(_scanned(sides, left))
    hashes = table.compared.hashes(here.rows).tolist() if here.at else []
    alive = {key: hashes[row] for key, row in here.at.items() if here.is_alive(key)}
    differing = [
        here.at[key]
        for key, hashed in alive.items()
        if key in here.twice or there.hashes.get(key) != hashed
    ]
    absent = there.keys(k for k in there.hashes if k not in alive)
    own = here.rows.select(names).take(pa.array(differing, pa.int64()))
    return pa.concat_tables([absent, own.cast(absent.schema)])


def proven_differences(
    sides: ComparedSides, keys: pa.Table, rows_max: int, *, values: bool
) -> FoundDifferences:
    """Compare the rows of these keys on both sides until each is decided, for a few rounds.
    Blocks.
    """
    unexamined = max(0, keys.num_rows - rows_max)
    left = keys.slice(0, rows_max)
    proven: list[Difference] = []
    proven_keys: list[pa.Table] = []
    place: BinlogPlace | None = None
    for _ in range(_ROUNDS):
        if not left.num_rows:
            break
        there = _source_rows(sides, left)
        place = there.place.high
        past = sides.catch_up.wait(sides.store, sides.topic, place)
        here = rows_of_keys(sides.lake(), sides.table, left)
        low = sides.position(there.place.low)
        open_: list[int] = []
        for row, key in enumerate(row_texts(left, sides.table.compared.key).to_list()):
            found = _compared(sides, key, there, here, values=values)
            if found is None:
                continue
            if past and not _is_beyond(here, key, low):
                if len(proven) < _EXPLAINED_MAX:
                    found = _explained(sides, found, key, here, place)
                proven.append(found)
                proven_keys.append(left.slice(row, 1))
            else:
                open_.append(row)
        left = left.take(pa.array(open_, pa.int64()))
        if not past:
            break  # it has waited as long as allowed
    differing = pa.concat_tables(proven_keys) if proven_keys else None
    return FoundDifferences(tuple(proven), left.num_rows, unexamined, place, differing)


def _explained(
    sides: ComparedSides, found: Difference, key: str, here: KeyedRows, place: BinlogPlace
) -> Difference:
    """Add to a difference that the lake's newest change of the row was rolled back, if the server's
    binlog shows that.
    """
    if found.kind is DifferenceKind.MISSING or key not in here.at:
        return found
    _, number, offset, _, _ = here.position(key).parts
    prefix, _, digits = place.file.rpartition(".")
    changed_at = BinlogPlace(f"{prefix}.{number:0{len(digits)}d}", offset)
    undone = sides.connection.has_undone(changed_at)
    return replace(found, note=ROLLED_BACK) if undone else found


def _is_beyond(here: KeyedRows, key: str, low: Position) -> bool:
    return key in here.at and here.position(key) > low


def _compared(
    sides: ComparedSides, key: str, there: _SourceRows, here: KeyedRows, *, values: bool
) -> Difference | None:
    """Return how a row differs; None if it doesn't."""
    alive = here.is_alive(key)
    if key not in there.at:
        return _difference(sides, DifferenceKind.SURPLUS, here, key) if alive else None
    if key in here.twice:
        found = _difference(sides, DifferenceKind.SURPLUS, here, key)
        return replace(found, note="the lake has more than one row of the key")
    if not alive:
        return _difference(sides, DifferenceKind.MISSING, there, key)
    theirs, ours = (side.rows.slice(side.at[key], 1) for side in (there, here))
    differing = {}
    for column in sides.table.compared.columns:
        source, mine = (rows.column(column.name).combine_chunks() for rows in (theirs, ours))
        if canonical_texts(column, mine).to_pylist() != canonical_texts(column, source).to_pylist():
            differing[column.name] = (source[0].as_py(), mine[0].as_py())
    if not differing:
        return None
    found = _difference(sides, DifferenceKind.CHANGED, there, key, differing)
    return found if values else replace(found, columns=dict.fromkeys(differing, (None, None)))


def _difference(
    sides: ComparedSides,
    kind: DifferenceKind,
    side: _SourceRows | KeyedRows,
    key: str,
    columns: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
) -> Difference:
    """Return a difference with the values of the key that a side has."""
    names = [column.name for column in sides.table.compared.key]
    shown = {name: str(side.rows.column(name)[side.at[key]].as_py()) for name in names}
    return Difference(shown, kind, columns, note_of(sides.table, kind, columns))


class _Hashes:
    """Hashes of the source's rows, by the row text of their keys, and the keys themselves."""

    def __init__(self, table: ComparedTable) -> None:
        self._table = table
        self.hashes: dict[str, int] = {}
        self._keys: list[pa.Table] = []
        self._at: dict[str, tuple[int, int]] = {}
        self.sums = BucketSums(table.compared.quick)

    def add(self, keys: pa.Table, hashes: Sequence[int]) -> None:
        """Add rows."""
        texts = row_texts(keys, self._table.compared.key).to_list()
        for row, (text, hashed) in enumerate(zip(texts, hashes, strict=True)):
            if text not in self.hashes:
                self._at[text] = len(self._keys), row
            self.hashes[text] = hashed
        buckets = self._table.compared.buckets(keys).tolist()
        for bucket, hashed in zip(buckets, hashes, strict=True):
            self.sums.add_sum(bucket, 1, hashed)
        self._keys.append(keys)

    def add_all(self, parts: Iterable[tuple[pa.Table, Sequence[int]]]) -> None:
        """Add the rows of several parts."""
        for keys, hashes in parts:
            self.add(keys, hashes)

    def keys(self, texts: Iterable[str]) -> pa.Table:
        """Return the keys with these row texts."""
        found = [self._keys[part].slice(row, 1) for part, row in map(self._at.__getitem__, texts)]
        schema = pa.schema([(c.name, c.type.arrow) for c in self._table.compared.key])
        return pa.concat_tables([schema.empty_table(), *found])


def _looked_up(sides: ComparedSides, keys: pa.Table) -> _Hashes:
    found = _Hashes(sides.table)
    for condition in sides.conditions(keys):
        found.add(*sides.in_snapshot(partial(_hashed, sides, condition)))
    return found


def _scanned(sides: ComparedSides, buckets: Sequence[int]) -> Iterator[tuple[pa.Table, list[int]]]:
    """Read the whole table, range by range, and return the keys and hashes of the buckets' rows."""
    some = ",".join(map(str, buckets))
    only = "1" if len(buckets) == BUCKETS else f"({sides.table.compared.bucket_sql}) in ({some})"
    after: Bound | None = None
    while True:
        sides.read_limit.wait_until_idle(sides.connection)
        count = sides.read_limit.rows_at_once
        after, rows = sides.in_snapshot(partial(_hashed_range, sides, after, count, only))
        yield rows
        sides.read_limit.spend(count)
        if after is None:
            return


def _hashed_range(
    sides: ComparedSides, after: Bound | None, count: int, only: str, snapshot: Snapshot
) -> tuple[Bound | None, tuple[pa.Table, list[int]]]:
    bound = snapshot.bound(sides.table.range_key, after, count)
    condition = range_sql(sides.table.range_key, KeyRange(after, bound))
    return bound, _hashed(sides, f"({condition}) and {only}", snapshot)


def _hashed(sides: ComparedSides, condition: str, snapshot: Snapshot) -> tuple[pa.Table, list[int]]:
    compared = sides.table.compared
    asked = ",".join((*(column.plain_sql for column in compared.key), compared.hash_sql))
    rows = snapshot.answer(asked, condition)
    keys = rows_of_values((row[:-1] for row in rows), compared.key)
    values = {name: column.values for name, column in keys.items()}
    return pa.table(values), [int(row[-1] or 0) for row in rows]


def _without(found: BucketSums, expected: BucketSums, buckets: Sequence[int]) -> list[int]:
    """Return those of the buckets whose sums show that not all rows were found."""
    wanted = set(buckets)
    return [bucket for bucket in found.differing(expected) if bucket in wanted]


def _source_rows(sides: ComparedSides, keys: pa.Table) -> _SourceRows:
    """Read all columns of these keys' rows."""
    places, parts = [], []
    for place, found in sides.source_rows(keys):
        places.append(place)
        parts.append(found.table)
    rows = pa.concat_tables(parts).combine_chunks()
    at = {text: row for row, text in enumerate(row_texts(rows, sides.table.compared.key).to_list())}
    low, high = lowest(*(place.low for place in places)), highest(*(place.high for place in places))
    return _SourceRows(rows, at, SnapshotPlace(low, high))
