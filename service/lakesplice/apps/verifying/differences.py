"""Finds the rows that differ in buckets whose sums differ, and proves that they do.

Let S be the place in the binlog at which the source was read. A row is proven to differ if its
newest change in the lake isn't after S and the lake has all changes up to S (`reached.py`). Any
other row may have changed since, or its change may not have arrived: it is read again, at a new S,
for a few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from lakesplice.apps.verifying.catch_up import CatchUp, epoch_of
from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.known_causes import ROLLED_BACK, note_of
from lakesplice.apps.verifying.lake_rows import KeyedRows, rows_in_buckets, rows_of_keys
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.report import Difference, DifferenceKind
from lakesplice.apps.verifying.source_sums import SourceSums, highest
from lakesplice.model.position import Position
from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.checksums import BUCKETS, BucketSums, row_texts
from lakesplice.planning.source_rows.columns import ReadColumn
from lakesplice.planning.source_rows.key_lookups import keys_sql
from lakesplice.planning.source_rows.key_ranges import Bound, KeyRange, range_sql
from lakesplice.planning.source_rows.row_text import rows_of_values
from lakesplice.storage.source.binlog_places import BinlogPlace, SnapshotPlace
from lakesplice.storage.source.rows import (
    Snapshot,
    SourceConnection,
    SourceRows,
    TableChanged,
)
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.table import Table

ROUNDS = 5
_Result = TypeVar("_Result")
KEYS_AT_ONCE = 500
# Of so many rows the server's binlog is looked at, with a statement each.
_EXPLAINED_MAX = 100
# Up to this number, keys are looked up at the source; for more its whole table is read.
_LOOKUPS_MAX = 50_000


@dataclass(frozen=True)
class ComparedSides:
    """Both sides of a table that is compared, and how they are read."""

    connection: SourceConnection
    store: Store
    topic: str
    table: ComparedTable
    read_limit: ReadLimit
    catch_up: CatchUp

    def lake(self) -> Table:
        """Return the lake's table at its newest version."""
        return Table(self.store)


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


class ChangedMeanwhileError(Exception):
    """The source's table was altered; the verification must start again."""


def differing_keys(
    sides: ComparedSides, sums: SourceSums, lake: Table, buckets: Sequence[int]
) -> pa.Table:
    """Return the keys of the rows that differ in these buckets, with the source's column names.
    Blocks.
    """
    table = sides.table
    here = rows_in_buckets(lake, table, buckets)
    key = list(table.compared.key)
    if table.by_key and here.rows.num_rows <= _LOOKUPS_MAX:
        there = _looked_up(sides, here.rows, [column.name for column in key])
        left = _without(there.sums, sums.sums, buckets)
    else:
        there, left = _Hashes(table), list(buckets)
    if left:
        there.add_all(_scanned(sides, left))
    hashes = table.compared.hashes(here.rows).tolist() if here.at else []
    alive = {key: hashes[row] for key, row in here.at.items() if not here.is_deleted(key)}
    differing = [
        here.at[key]
        for key, hashed in alive.items()
        if key in here.twice or there.hashes.get(key) != hashed
    ]
    absent = there.keys(k for k in there.hashes if k not in alive)
    if not differing:
        return absent
    names = [column.name for column in table.compared.key]
    own = here.rows.select(names).take(pa.array(differing))
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
    for _ in range(ROUNDS):
        if not left.num_rows:
            break
        there = _source_rows(sides, left)
        place = there.place.high
        past = sides.catch_up.wait(sides.store, sides.topic, place)
        here = rows_of_keys(sides.lake(), sides.table, left)
        state = sides.lake().snapshot.manifest.sources[sides.topic]
        low = there.place.low.position(epoch_of(state))
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
    alive = key in here.at and not here.is_deleted(key)
    names = [column.name for column in sides.table.compared.key]
    if key not in there.at:
        if not alive:
            return None
        shown = _values_as_text(here.rows, here.at[key], names)
        return Difference(
            shown, DifferenceKind.SURPLUS, note=note_of(sides.table, DifferenceKind.SURPLUS, {})
        )
    if key in here.twice:
        note = "the lake has more than one row of the key"
        return Difference(
            _values_as_text(here.rows, here.at[key], names), DifferenceKind.SURPLUS, note=note
        )
    theirs = there.rows.slice(there.at[key], 1)
    shown = _values_as_text(theirs, 0, names)
    if not alive:
        return Difference(
            shown, DifferenceKind.MISSING, note=note_of(sides.table, DifferenceKind.MISSING, {})
        )
    ours = here.rows.slice(here.at[key], 1)
    differing = {}
    for column in sides.table.compared.columns:
        mine, source = (rows.column(column.name).combine_chunks() for rows in (ours, theirs))
        if canonical_texts(column, mine).to_pylist() != canonical_texts(column, source).to_pylist():
            differing[column.name] = (source[0].as_py(), mine[0].as_py())
    if not differing:
        return None
    note = note_of(sides.table, DifferenceKind.CHANGED, differing)
    kept = differing if values else dict.fromkeys(differing, (None, None))
    return Difference(shown, DifferenceKind.CHANGED, kept, note)


def _values_as_text(rows: pa.Table, row: int, names: Sequence[str]) -> dict[str, str]:
    return {name: str(rows.column(name)[row].as_py()) for name in names}


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


def _looked_up(sides: ComparedSides, rows: pa.Table, names: Sequence[str]) -> _Hashes:
    found = _Hashes(sides.table)
    for start in range(0, rows.num_rows, KEYS_AT_ONCE):
        keys = rows.select(list(names)).slice(start, KEYS_AT_ONCE)
        condition = keys_sql(sides.table.lake_key, sides.table.compared.key, keys)
        found.add(*in_snapshot(sides, partial(_hashed, sides, condition)))
        sides.read_limit.spend(keys.num_rows)
    return found


def _scanned(sides: ComparedSides, buckets: Sequence[int]) -> Iterator[tuple[pa.Table, list[int]]]:
    """Read the whole table, range by range, and return the keys and hashes of the buckets' rows."""
    some = ",".join(map(str, buckets))
    only = "1" if len(buckets) == BUCKETS else f"({sides.table.compared.bucket_sql}) in ({some})"
    after: Bound | None = None
    while True:
        sides.read_limit.wait_until_idle(sides.connection)
        count = sides.read_limit.rows_at_once

        after, rows = in_snapshot(sides, partial(_hashed_range, sides, after, count, only))
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
    """Read all columns of these keys' rows; each part is read in a snapshot of its own."""
    compared, parts = sides.table.compared, []
    places: list[SnapshotPlace] = []
    for start in range(0, keys.num_rows, KEYS_AT_ONCE):
        condition = keys_sql(sides.table.lake_key, compared.key, keys.slice(start, KEYS_AT_ONCE))

        place, found = in_snapshot(sides, partial(_placed_rows, compared.columns, condition))
        places.append(place)
        parts.append(pa.table({name: c.values for name, c in found.columns.items()}))
        sides.read_limit.spend(min(KEYS_AT_ONCE, keys.num_rows - start))
    rows = pa.concat_tables(parts).combine_chunks()
    at = {text: row for row, text in enumerate(row_texts(rows, compared.key).to_list())}
    low = min((place.low for place in places), key=BinlogPlace.position)
    return _SourceRows(rows, at, SnapshotPlace(low, highest(*(place.high for place in places))))


def _placed_rows(
    columns: Sequence[ReadColumn], condition: str, snapshot: Snapshot
) -> tuple[SnapshotPlace, SourceRows]:
    return snapshot.place, snapshot.rows_where(columns, condition)


def in_snapshot(sides: ComparedSides, work: Callable[[Snapshot], _Result]) -> _Result:
    """Return what `work` makes of a snapshot of the source's table. Blocks.

    Raises `ChangedMeanwhileError` if the table was altered.
    """
    found = sides.connection.in_snapshot(sides.table.source, work)
    if isinstance(found, TableChanged):
        raise ChangedMeanwhileError
    return found
