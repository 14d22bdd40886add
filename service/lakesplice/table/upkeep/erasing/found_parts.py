"""Finds the parts of a table that have data of some keys' rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.deltas import decode_delta
from lakesplice.formats.rowindex import Run
from lakesplice.model.arrays import Integers, KeyHashes, Mask
from lakesplice.model.manifest import DeadLetterRef, DeltaRef, Manifest, RunRef
from lakesplice.model.schema import TableSchema
from lakesplice.planning.keys.dead_letters_of_keys import is_of_keys
from lakesplice.planning.keys.requested_key import KeyValues, RequestedKey
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import UNKNOWN, locate
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.dead_letters import read_dead_letters
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.files.tombstones import deleted_rows
from lakesplice.table.files.whole_files import read_file
from lakesplice.table.protocol.ports import Store


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """The keys whose rows are to be erased, each once."""

    keys: tuple[RequestedKey, ...]

    @classmethod
    def of(cls, keys: Sequence[RequestedKey]) -> WantedKeys:
        """Return the keys, each once, in the order of their hashes."""
        once = {key.hash: key for key in keys}
        return cls(tuple(once[one] for one in sorted(once)))

    @classmethod
    def requested(cls, schema: TableSchema, keys: Sequence[KeyValues]) -> WantedKeys:
        """Return the keys in the types of a table, of a history table those that all versions of a
        row share; `UsageError` for values that can't be keys.
        """
        of_rows = row_schema(schema)
        return cls.of([RequestedKey.of(of_rows, key) for key in keys])

    @property
    def hashes(self) -> KeyHashes:
        """Their hashes, ascending."""
        high, low = ([key.hash[half] for key in self.keys] for half in (0, 1))
        return KeyHashes(np.array(high, np.uint64), np.array(low, np.uint64))

    def among(self, hashes: KeyHashes) -> Mask:
        """Mark the hashes that belong to these keys."""
        wanted = self.hashes
        marked: Mask = np.isin(hashes.high, wanted.high)
        hashes_wanted = {key.hash for key in self.keys}
        for at in np.flatnonzero(marked).tolist():
            marked[at] = hashes.at(at) in hashes_wanted
        return marked

    def of_rows(self, rows: pa.Table, schema: TableSchema) -> Mask:
        """Mark the rows (with the key columns) that have these keys."""
        return self.among(key_hash(rows, schema))


def row_schema(schema: TableSchema) -> TableSchema:
    """Return the schema with the key by which rows are erased: in a history table the one that all
    versions of a row share.
    """
    return replace(schema, key=schema.versioned_key) if schema.keeps_versions else schema


@dataclass(frozen=True, slots=True)
class FoundParts:
    """The parts that have data of the keys' rows.

    `files` are paths of base files; `live` counts the rows that aren't deleted, by the real-time
    view. `runs` are index runs, each with its number of such entries. `letters` are files of dead
    letters, each with a mask of those that belong, or may belong, to these rows; `unknown_letters`
    counts those for which this is unknown.
    """

    files: tuple[str, ...]
    rows: int
    live: int
    runs: tuple[tuple[RunRef, int], ...]
    deltas: tuple[DeltaRef, ...]
    letters: tuple[tuple[DeadLetterRef, Mask], ...]
    unknown_letters: int

    @property
    def letters_count(self) -> int:
        """The number of dead letters."""
        return sum(int(np.count_nonzero(marks)) for _, marks in self.letters)


def find_parts(store: Store, manifest: Manifest, wanted: WantedKeys) -> FoundParts:
    """Search all files that a version names for rows of the keys; changes nothing.

    Blocks: looks the keys up in the index, and reads the keys of every delta, all dead letters and,
    if the table has partition columns, the keys of every base file: a row that moved has a former
    address, which the index may no longer have. `CorruptFileError`, `StorageError`.
    """
    runs = RunCache().open_runs(store, manifest.runs)
    groups = np.array(sorted(manifest.groups), np.int64)
    found = locate(runs, wanted.hashes, groups)
    known = found.group != UNKNOWN
    group, row = found.group[known], found.row[known]
    deleted = deleted_rows(store, manifest, group, row)
    addressed = set(group.tolist())
    files = {
        path
        for path, file in manifest.files.items()
        if not addressed.isdisjoint(segment.group for segment in file.segments)
    }
    if manifest.schema.partitioned_by:
        files |= _files_with(store, manifest, wanted)
    letters, unknown = find_letters(store, manifest, manifest.schema, wanted)
    return FoundParts(
        files=tuple(sorted(files)),
        rows=int(np.count_nonzero(known)),
        live=int(np.count_nonzero(~deleted)),
        runs=tuple(
            (ref, count)
            for ref, run in zip(manifest.runs, runs, strict=True)
            if (count := _entries(run, wanted.hashes))
        ),
        deltas=tuple(ref for ref in manifest.deltas if _has_changes(store, manifest, ref, wanted)),
        letters=letters,
        unknown_letters=unknown,
    )


def _files_with(store: Store, manifest: Manifest, wanted: WantedKeys) -> set[str]:
    found = set()
    for path, file in manifest.files.items():
        with open_base(store, file, manifest.schema) as reader:
            parts = reader.read_each(manifest.schema.key)
            if any(wanted.of_rows(keys, manifest.schema).any() for keys in parts):
                found.add(path)
    return found


def _entries(run: Run, hashes: KeyHashes) -> int:
    """How many of the keys a run has, whatever their addresses."""
    groups: Integers = np.unique(run.groups)
    return int(np.count_nonzero(locate([run], hashes, groups).group != UNKNOWN))


def _has_changes(store: Store, manifest: Manifest, ref: DeltaRef, wanted: WantedKeys) -> bool:
    """Whether a delta has changes of these rows, including changes that are already in base
    files.
    """
    data = read_file(store, ref.file)
    names, version = manifest.schema.key, ref.schema_version
    keys = decode_delta(data, manifest.schema, version, path=ref.file.path, columns=names)
    return bool(wanted.of_rows(keys, manifest.schema).any())


def find_letters(
    store: Store, manifest: Manifest, schema: TableSchema, wanted: WantedKeys
) -> tuple[tuple[tuple[DeadLetterRef, Mask], ...], int]:
    """Return the files of dead letters that have some of these keys, which are keys of `schema`,
    with marks; and how many letters have an unknown key. Blocks; reads all dead letters.
    """
    found, unknown = [], 0
    for ref in manifest.dead_letters:
        letters = read_dead_letters(store, ref)
        marks = []
        for letter in letters.select(["topic", "key", "value"]).to_pylist():
            source = manifest.sources.get(letter["topic"])
            shard = {} if source is None else dict(source.shard)
            answer = is_of_keys(letter["key"], letter["value"], wanted.keys, schema, shard)
            unknown += answer is None
            marks.append(bool(answer))
        if any(marks):
            found.append((ref, np.array(marks, np.bool_)))
    return tuple(found), unknown
