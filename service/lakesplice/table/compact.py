"""Compaction of some base files: their waiting changes go into their next versions.

    read each delta once -> per file: read the state of the addressed rows -> overlay -> rewrite
    under a new name -> check what was written -> (the caller commits `Splice`)

Addresses do not move, so changes that arrive meanwhile stay valid and wait for the next round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.formats.parquet import WrittenBase
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.schema import TableSchema
from lakesplice.planning.edits import Edits
from lakesplice.planning.overlay import Placed, Waiting, overlay, state_columns
from lakesplice.splicing.pages.rows import read_rows
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.verify import verify_edits
from lakesplice.table.base import create_base, open_base
from lakesplice.table.intents import NewFile, Splice
from lakesplice.table.layout import base_path
from lakesplice.table.page_rewriter import FALLBACK
from lakesplice.table.ports import Entropy, Rewriter, Store
from lakesplice.table.rewrite import PlainRewriter
from lakesplice.table.waiting import read_waiting


@dataclass(frozen=True)
class Compacted:
    """What a compaction wrote, for a `Splice` to make visible.

    A file whose waiting changes were all stale is not in `replaced`; they are consumed all the
    same. `counts`: `changes` consumed, of which `stale`; `rows` edited; `bytes_read`,
    `bytes_written`; and the rewriter's own.
    """

    replaced: Mapping[str, NewFile]
    consumed: Mapping[str, frozenset[int]]
    counts: Mapping[str, int]


def compact_files(
    store: Store,
    manifest: Manifest,
    paths: Sequence[str],
    rewriter: Rewriter,
    entropy: Entropy,
) -> Compacted:
    """Rewrite base files with the changes that `manifest` has waiting for them.

    `paths` name files of the manifest. Memory holds their waiting changes and about two row groups.
    Blocks; may be called again, each time under new names. Raises `CorruptFileError` for a damaged
    file or delta and for a change whose key is not its row's, and `StorageError`; what was written
    is then left for the vacuum.
    """
    files = [manifest.files[path] for path in paths]
    groups = {segment.group for file in files for segment in file.segments}
    changes = read_waiting(store, manifest.deltas, manifest.schema, groups)
    waiting = Waiting.of(changes)
    replaced: dict[str, NewFile] = {}
    counts = Counter(changes=changes.num_rows, stale=0, rows=0, bytes_read=0, bytes_written=0)
    for file in files:
        placed = waiting.place(file.segments, file.path)
        edits = _edits(store, file, placed, manifest)
        counts["stale"] += edits.stale
        if not len(edits.rows):
            continue
        new, more = _rewrite(store, file, edits, manifest.schema, rewriter, entropy)
        replaced[file.path] = new
        counts.update(more)
        counts["rows"] += len(edits.rows)
        counts["bytes_read"] += file.bytes
        counts["bytes_written"] += new.base.bytes
    consumed = {
        delta.file.path: frozenset(groups & delta.waiting.keys())
        for delta in manifest.deltas
        if not groups.isdisjoint(delta.waiting)
    }
    return Compacted(replaced, consumed, counts)


def splice_of(generation: int, planned_on: int, parts: Sequence[Compacted]) -> Splice:
    """Return the one commit for what several tasks compacted of the files of the version
    `planned_on`, each file by one of them.
    """
    consumed: dict[str, frozenset[int]] = {}
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
        for path, groups in part.consumed.items():
            consumed[path] = consumed.get(path, frozenset()) | groups
    replaced = {path: new for part in parts for path, new in part.replaced.items()}
    return Splice(generation, replaced, consumed, dict(sorted(counts.items())), planned_on)


def _edits(store: Store, file: BaseFile, placed: Placed, manifest: Manifest) -> Edits:
    if not len(placed.rows):
        return Edits()
    schema = manifest.schema
    names = state_columns(schema, manifest.ordering)
    open_base(store, file, schema).__exit__()  # what it checks, the pages' reader relies on
    with store.open(file.path) as source:
        pages = SourceFile(source, file.path)
        state = {name: read_rows(pages, name, placed.addressed) for name in names}
    return overlay(placed, pa.table(state), schema, file.path, manifest.ordering)


def _rewrite(
    store: Store,
    file: BaseFile,
    edits: Edits,
    schema: TableSchema,
    rewriter: Rewriter,
    entropy: Entropy,
) -> tuple[NewFile, Mapping[str, int]]:
    splices = file.splices + 1
    written: list[WrittenBase] = []

    def write(sink: pa.NativeFile) -> WrittenBase:
        written.append(rewriter.rewrite(source, file, edits, schema, sink))
        return written[0]

    def write_plainly(sink: pa.NativeFile) -> WrittenBase:
        plain = PlainRewriter().rewrite(source, file, edits, schema, sink)
        written.append(replace(plain, counts={FALLBACK + "late": 1}))
        return written[0]

    path = base_path(file.segments[0].group, splices, entropy)
    with store.open(file.path) as source:
        try:
            new = create_base(store, path, file.segments, write, splices=splices)
        except UnsupportedError:
            # What was written is gone; a name is used once.
            path = base_path(file.segments[0].group, splices, entropy)
            new = create_base(store, path, file.segments, write_plainly, splices=splices)
    _verify(store, new.base, edits, schema)
    return new, written[0].counts


def _verify(store: Store, file: BaseFile, edits: Edits, schema: TableSchema) -> None:
    """Read the edited values back: what is committed was seen to be readable and meant."""
    open_base(store, file, schema).__exit__()
    with store.open(file.path) as source:
        verify_edits(source, file.path, edits)
