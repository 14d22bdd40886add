"""The row index compared with the base files, or rebuilt from them.

Both need to know which entries there should be: the key of every row of a base file, tombstones
included, leads to the row's address. If several rows have one key, the one with the highest
position counts; of two with the same position, the live one. A rebuild writes these entries, a
check compares the runs with them. Both work on one range of key hashes at a time to bound memory,
and read the key columns once per range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lakesplice.errors import CorruptFileError
from lakesplice.formats.rowindex import Entries, Run
from lakesplice.formats.rowindex.encode import bucket_of
from lakesplice.model.address import BaseFile, RowAddress, group_name
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op
from lakesplice.model.manifest import Manifest, RunRef
from lakesplice.model.names import (
    GROUP,
    IS_DELETED,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.rows.index_merge import (
    concatenated,
    merged_part,
    part_bits,
    sorted_entries,
    take,
)
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import contains
from lakesplice.planning.sources.shards import shard_columns
from lakesplice.table.files.base_files import addresses, open_base
from lakesplice.table.files.index_runs import open_run, write_run
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.layout import run_path
from lakesplice.table.protocol.ports import UNWATCHED, Entropy, Progress, Store
from lakesplice.table.protocol.snapshot import Snapshot

ENTRIES_PER_PART = 1 << 22
# A check compares a part in pieces, so that it needs little more memory than a rebuild.
PIECE_BITS = 3
EXAMPLES_MAX = 10


class _Row(NamedTuple):
    """A row's newest position, whether it lives, and its shard. The largest wins."""

    position: Position
    is_live: bool
    shard: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of a check. The index is `sound` if it equals what a rebuild would write.

    `rows` are the rows of the base files, `entries` the keys of the index in live groups. `missing`
    keys have a row and no entry, so that their next change would be inserted a second time; the
    former address of a row that moved and was purged needs no entry. `wrong` keys have an entry for
    another row, `stray` keys an entry and no row. `duplicates` are rows whose key another row has
    at a higher position; that is a fault of the table, which a rebuild doesn't repair, except for
    deleted rows in a table whose rows move between partitions. `damaged` names the runs that can't
    be read, and why; the other runs are compared without them. `examples` describes the first
    faults of each kind.
    """

    rows: int
    entries: int
    missing: int = 0
    wrong: int = 0
    stray: int = 0
    duplicates: int = 0
    damaged: tuple[tuple[str, str], ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether every key leads to its row, and the index has no other entry."""
        return not (self.missing or self.wrong or self.stray or self.damaged)


def check(
    store: Store,
    snapshot: Snapshot,
    *,
    entries_per_part: int = ENTRIES_PER_PART,
    progress: Progress = UNWATCHED,
) -> IndexReport:
    """Compare the row index with the base files, in both directions.

    Blocks; reads every key. Damaged and missing runs are reported. A damaged base file or delta
    raises `CorruptFileError`, since then the index can't be checked.
    """
    manifest = snapshot.manifest
    runs, damaged = _open_or_report(store, manifest)
    live = np.array(sorted(manifest.groups), np.int64)
    bits = part_bits(manifest.stored_rows, entries_per_part)
    progress.expect(manifest.stored_rows << bits)
    rows = duplicates = entries = 0
    missing, wrong, stray = _Faults("missing"), _Faults("wrong"), _Faults("stray")
    for part in range(1 << bits):
        whole = _expected(store, manifest, part, bits, progress)
        rows += whole.rows
        duplicates += whole.duplicates
        for piece, expected in _pieces(whole.entries, part, bits):
            indexed = merged_part(runs, piece, bits + PIECE_BITS)
            indexed = take(indexed, contains(live, indexed.group))
            entries += len(indexed.high)
            here, there = _common(expected, indexed)
            absent = take(expected, ~_places(here, len(expected.high)))
            missing.add(_needed(store, manifest, absent))
            stray.add(take(indexed, ~_places(there, len(indexed.high))))
            ours, theirs = take(expected, here), take(indexed, there)
            wrong.add(take(theirs, (ours.group != theirs.group) | (ours.row != theirs.row)))
    return IndexReport(
        rows=rows,
        entries=entries,
        missing=missing.count,
        wrong=wrong.count,
        stray=stray.count,
        duplicates=duplicates,
        damaged=damaged,
        examples=(*missing.examples, *wrong.examples, *stray.examples),
    )


def rebuild(
    store: Store,
    snapshot: Snapshot,
    entropy: Entropy,
    *,
    entries_per_part: int = ENTRIES_PER_PART,
    progress: Progress = UNWATCHED,
) -> RunRef:
    """Write one run that replaces all runs of the snapshot, from the keys of the base files.

    Blocks; reads every key and no run. Nothing names the run until a `Redirect`, planned on the
    snapshot's version, commits it. `CorruptFileError` for a damaged base file or delta.
    """
    manifest = snapshot.manifest
    rows = manifest.stored_rows
    bits = part_bits(rows, entries_per_part)
    progress.expect(rows << bits)
    parts = (_expected(store, manifest, part, bits, progress) for part in range(1 << bits))
    return write_run(store, run_path(entropy), (part.entries for part in parts), rows)


class _Expected(NamedTuple):
    entries: Entries
    rows: int
    duplicates: int


def _expected(
    store: Store, manifest: Manifest, part: int, bits: int, progress: Progress
) -> _Expected:
    """Return the entries that the index should have for the keys whose `high` begins with the bits
    `part`.
    """
    pieces: list[Entries] = []
    for path in sorted(manifest.files):
        file = manifest.files[path]
        pieces.extend(_keys_of(store, manifest, file, part, bits))
        progress.advance(file.rows)
    entries, first = sorted_entries(concatenated(pieces))
    if first.all():
        return _Expected(entries, len(first), 0)
    entries = _winners_first(store, manifest, entries, first)
    duplicates = take(entries, ~first)
    if manifest.schema.partitioned_by:  # places that rows left are deleted
        duplicates = _of_standing(store, manifest, duplicates, lambda row: row.is_live)
    return _Expected(take(entries, first), len(first), len(duplicates.high))


def _needed(store: Store, manifest: Manifest, absent: Entries) -> Entries:
    """Return those of the missing entries that the index has to have.

    A purge may leave older addresses of a row. Their positions are below the floor, as the row's
    was, so no change at or below the floor will be applied to them.
    """
    if not manifest.schema.partitioned_by or not len(absent.high):
        return absent
    names = shard_columns(manifest.sources.values())
    floors = {
        tuple(dict(source.shard)[name] for name in names): source.purge_floor
        for source in manifest.sources.values()
    }

    def may_be_met(row: _Row) -> bool:
        return row.is_live or row.position > floors.get(row.shard, BEFORE_ALL)

    return _of_standing(store, manifest, absent, may_be_met)


def _of_standing(
    store: Store,
    manifest: Manifest,
    entries: Entries,
    holds: Callable[[_Row], bool],
) -> Entries:
    standing = _standing(store, manifest, entries)
    addressed = map(RowAddress, entries.group.tolist(), entries.row.tolist())
    marks = [holds(standing[address]) for address in addressed]
    return take(entries, np.array(marks, np.bool_))


def _pieces(entries: Entries, part: int, bits: int) -> Iterator[tuple[int, Entries]]:
    """Split the entries of a part by `PIECE_BITS` more bits of their hashes."""
    pieces = bucket_of(entries.high, bits + PIECE_BITS)
    for piece in range(part << PIECE_BITS, (part + 1) << PIECE_BITS):
        start, stop = (int(at) for at in np.searchsorted(pieces, (piece, piece + 1)))
        yield piece, take(entries, np.arange(start, stop))


def _keys_of(
    store: Store, manifest: Manifest, file: BaseFile, part: int, bits: int
) -> Iterator[Entries]:
    schema = manifest.schema
    with open_base(store, file, schema) as reader:
        for row_group, (start, stop) in enumerate(reader.row_groups):
            high, low = key_hash(reader.read(row_group, schema.key), schema)
            group, row = addresses(file, np.arange(start, stop))
            entries = Entries(high, low, group, row)
            yield take(entries, bucket_of(high, bits) == part) if bits else entries


def _winners_first(store: Store, manifest: Manifest, entries: Entries, first: Mask) -> Entries:
    """Reorder the entries of each key that several rows have, so that the row that counts comes
    first.
    """
    heads = np.flatnonzero(first)
    sizes = np.diff(np.append(heads, len(first)))
    shared = np.repeat(sizes > 1, sizes)
    standing = _standing(store, manifest, take(entries, shared))
    order = np.arange(len(first))
    for head, size in zip(heads[sizes > 1], sizes[sizes > 1], strict=True):
        places = range(int(head), int(head + size))
        rank = [standing[RowAddress(int(entries.group[at]), int(entries.row[at]))] for at in places]
        order[head] = head + rank.index(max(rank))
        order[head + 1 : head + size] = [at for at in places if at != order[head]]
    return take(entries, order)


def _standing(store: Store, manifest: Manifest, entries: Entries) -> dict[RowAddress, _Row]:
    """Return the row at each address, by base file and deltas together."""
    wanted = set(map(RowAddress, entries.group.tolist(), entries.row.tolist()))
    groups = {group for group, _ in wanted}
    shard = shard_columns(manifest.sources.values())
    names = (POSITION_FILE, POSITION_OFFSET, IS_DELETED, *shard)
    found: dict[RowAddress, _Row] = {}
    for file in manifest.files.values():
        if groups.isdisjoint(segment.group for segment in file.segments):
            continue
        with open_base(store, file, manifest.schema) as reader:
            for row_group, (start, stop) in enumerate(reader.row_groups):
                columns = reader.read(row_group, names)
                group, row = addresses(file, np.arange(start, stop))
                near = np.flatnonzero(np.isin(row, entries.row) & np.isin(group, entries.group))
                nearby = map(RowAddress, group[near].tolist(), row[near].tolist())
                values = (column.to_pylist() for column in columns.take(near).columns)
                for address, number, offset, dead, *own in zip(nearby, *values, strict=True):
                    if address in wanted:
                        found[address] = _Row(Position(number, offset), not dead, tuple(own))
    changes = read_waiting(store, manifest.deltas, manifest.schema, groups, columns=())
    columns = (changes.column(name) for name in (GROUP, ROW, POSITION_FILE, POSITION_OFFSET, OP))
    for group, row, number, offset, op in zip(*(c.to_pylist() for c in columns), strict=True):
        address, position = RowAddress(group, row), Position(number, offset)
        old = found.get(address)
        if old is not None and position > old.position:
            found[address] = _Row(position, op != Op.DELETE, old.shard)
    return found


class _Faults:
    """Counts the faults of one kind, and describes the first ones."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.count = 0
        self.examples: list[str] = []

    def add(self, entries: Entries) -> None:
        room = EXAMPLES_MAX - len(self.examples)
        self.count += len(entries.high)
        self.examples += [
            f"{self._kind}: key={int(high):016x}{int(low):016x} "
            f"group={group_name(int(group))} row={int(row)}"
            for high, low, group, row in zip(*(a[:room] for a in entries), strict=True)
        ]


def _open_or_report(
    store: Store, manifest: Manifest
) -> tuple[list[Run], tuple[tuple[str, str], ...]]:
    runs, damaged = [], []
    for ref in manifest.runs:
        try:
            run = open_run(store, ref)
            run.verify()
        except CorruptFileError as error:
            damaged.append((ref.file.path, str(error)))
        else:
            runs.append(run)
    return runs, tuple(damaged)


def _common(ours: Entries, theirs: Entries) -> tuple[Integers, Integers]:
    """Return the places of the keys that both have: in `ours`, and in `theirs`."""
    count = len(ours.high)
    both, first = sorted_entries(
        Entries(
            np.concatenate((ours.high, theirs.high)),
            np.concatenate((ours.low, theirs.low)),
            np.zeros(count + len(theirs.high), np.int64),
            np.arange(count + len(theirs.high)),
        )
    )
    # Neither side repeats a key, so a key's second entry is theirs, right after ours.
    second = np.flatnonzero(~first)
    return both.row[second - 1], both.row[second] - count


def _places(indices: Integers, count: int) -> Mask:
    mask = np.zeros(count, bool)
    mask[indices] = True
    return mask
