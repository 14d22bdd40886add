"""Rewrites files that had data of some rows, without that data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.deltas import encode_delta
from lakesplice.formats.rowindex import Entries, Run
from lakesplice.model.address import GROUP_BITS
from lakesplice.model.arrays import KeyHash, KeyHashes, Mask
from lakesplice.model.manifest import DeadLetterRef, DeltaRef, ErasedRef, Manifest, RunRef
from lakesplice.model.names import POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.model.progress.erased_keys import ErasedKeys, SaltedHash
from lakesplice.planning.keys.erased_changes import erased_positions
from lakesplice.planning.rows.index_merge import merge_runs, take
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.table.files.dead_letters import read_dead_letters, write_dead_letters
from lakesplice.table.files.erased_keys import read_erased, write_erased
from lakesplice.table.files.index_runs import RunCache, write_entries, write_run
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.files.whole_files import put_file
from lakesplice.table.protocol.intents import Erase, Rewritten
from lakesplice.table.protocol.layout import delta_path, run_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Progress, Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.erasing.found_parts import FoundParts, WantedKeys
from lakesplice.table.upkeep.remaining_rows import RemainingRows

_SALT_BITS = 128


@dataclass
class _BaseFiles:
    """The base files that were written; `gone` has the keys and positions of the rows that were
    left out.
    """

    inputs: list[str] = field(default_factory=list)
    outputs: list[NewFile] = field(default_factory=list)
    pieces: list[Entries] = field(default_factory=list)
    gone: list[pa.Table] = field(default_factory=list)


def write_without(
    store: Store,
    snapshot: Snapshot,
    found: FoundParts,
    wanted: WantedKeys,
    generation: int,
    entropy: Entropy,
    *,
    progress: Progress,
) -> Erase | None:
    """Write the replacements of the parts that were found in the version of `snapshot`; None if
    there is nothing to erase.

    No change may wait for the base files. Blocks; memory holds a row group and 32 bytes per
    remaining row. `CorruptFileError`, `StorageError`. Nothing names the new files until the intent
    is committed.
    """
    manifest = snapshot.manifest
    base = _base_files(store, manifest, found.files, wanted, entropy, progress)
    erased = _remembered(store, manifest, wanted, base.gone, entropy)
    rewritten = Rewritten(
        {ref.file.path: _run(store, ref, count, wanted, entropy) for ref, count in found.runs},
        {ref.file.path: _delta(store, manifest, ref, wanted, entropy) for ref in found.deltas},
        {ref.file.path: _letters(store, ref, marks, entropy) for ref, marks in found.letters},
    )
    keys = frozenset(key.hash for key in wanted.keys)
    untouched = not (base.inputs or found.runs or found.deltas or found.letters)
    if untouched and erased == manifest.erased and not _is_highest(manifest, keys):
        return None
    return Erase(
        generation=generation,
        inputs=tuple(base.inputs),
        outputs=tuple(base.outputs),
        run=write_entries(store, base.pieces, entropy),
        rewritten=rewritten,
        keys=keys,
        erased=erased,
        read=manifest.erased,
        planned_on=snapshot.version,
        schema_version=manifest.schema.version,
        counts={
            "files": len(base.inputs),
            "rows": sum(rows.num_rows for rows in base.gone),
            "dead_letters": found.letters_count,
            "bytes_read": sum(manifest.files[path].bytes for path in base.inputs),
            "bytes_written": sum(new.base.bytes for new in base.outputs),
        },
    )


def _base_files(
    store: Store,
    manifest: Manifest,
    paths: Sequence[str],
    wanted: WantedKeys,
    entropy: Entropy,
    progress: Progress,
) -> _BaseFiles:
    """Write base files without the rows; files that have none of them are unchanged."""
    schema, done = manifest.schema, _BaseFiles()
    names = (*schema.key, POSITION_FILE, POSITION_OFFSET)
    progress.expect(sum(manifest.files[path].bytes for path in paths))
    for path in paths:
        file = manifest.files[path]
        remaining = RemainingRows(
            store, manifest, file, names, lambda rows: wanted.of_rows(rows, schema)
        )
        if remaining.left_out.num_rows:
            group = entropy.bits(GROUP_BITS)
            new = remaining.write(group, entropy)
            if new is not None:
                done.outputs.append(new)
                done.pieces.append(remaining.entries(group, manifest))
            done.inputs.append(path)
            done.gone.append(remaining.left_out)
        progress.advance(file.bytes)
    return done


def _is_highest(manifest: Manifest, keys: frozenset[KeyHash]) -> bool:
    """Whether the manifest has the hash of one of the keys, as the key of a partition's highest
    change.
    """
    highest = (
        state.highest
        for source in manifest.sources.values()
        for state in source.partitions.values()
    )
    return any(one is not None and one.key in keys for one in highest)


def _remembered(
    store: Store, manifest: Manifest, wanted: WantedKeys, gone: list[pa.Table], entropy: Entropy
) -> ErasedRef | None:
    """Write the record of the erased keys, if a topic may repeat their earlier records."""
    if not manifest.sources:
        return manifest.erased
    known = manifest.erased and read_erased(store, manifest.erased)
    before = known or ErasedKeys(entropy.bits(_SALT_BITS).to_bytes(_SALT_BITS // 8))
    after = before
    for rows in gone:
        file, offset = (rows[name].to_numpy() for name in (POSITION_FILE, POSITION_OFFSET))
        hashes = key_hash(rows, manifest.schema)
        after = after.with_more(erased_positions(hashes, file, offset, before.salt))
    after = after.with_more(_purged_before(manifest, wanted, after))
    if after == before and (known is not None or not after.positions):
        return manifest.erased
    return write_erased(store, after, entropy)


def _purged_before(
    manifest: Manifest, wanted: WantedKeys, after: ErasedKeys
) -> dict[SaltedHash, Position]:
    """A key without a row may have had one that was purged: all changes up to what its topic has
    surely sent are repetitions.
    """
    if manifest.is_merged:
        return {}
    bound = purge_bound(manifest)
    if bound is None or bound <= Position(0, 0):
        return {}
    hashes, below = wanted.hashes, Position(bound.file, bound.offset - 1)
    at = np.full(len(wanted.keys), below.file), np.full(len(wanted.keys), below.offset)
    found = erased_positions(hashes, *at, after.salt)
    return {key: where for key, where in found.items() if key not in after.positions}


def _run(
    store: Store, ref: RunRef, count: int, wanted: WantedKeys, entropy: Entropy
) -> RunRef | None:
    if count == ref.entries:
        return None
    (run,) = RunCache().open_runs(store, [ref])
    new = write_run(store, run_path(entropy), _others(run, wanted), ref.entries)
    return replace(new, keys_version=ref.keys_version)


def _others(run: Run, wanted: WantedKeys) -> Iterator[Entries]:

    for block in merge_runs([run]):
        left = take(block, ~wanted.among(KeyHashes(block.high, block.low)))
        if len(left.high):
            yield left


def _delta(
    store: Store, manifest: Manifest, ref: DeltaRef, wanted: WantedKeys, entropy: Entropy
) -> DeltaRef | None:
    """Write the changes of a delta that still wait; those of the erased rows are already in base
    files.
    """
    schema = manifest.schema
    waiting = read_waiting(store, [ref], schema, ref.waiting)
    left = waiting.filter(pa.array(~wanted.of_rows(waiting, schema)))
    data = encode_delta(left, schema)
    file = put_file(store, delta_path(entropy), data)
    return replace(ref, file=file, rows=left.num_rows, schema_version=schema.version)


def _letters(
    store: Store, ref: DeadLetterRef, marks: Mask, entropy: Entropy
) -> DeadLetterRef | None:
    if marks.all():
        return None
    left = read_dead_letters(store, ref).filter(pa.array(~marks))
    new = write_dead_letters(store, left, entropy)
    return replace(ref, file=new.file, rows=new.rows)
