"""Compaction of some base files: their waiting changes are merged into their next versions.

    read each delta once -> per file: read the state of the addressed rows -> overlay -> rewrite
    under a new name -> check what was written -> (the caller commits `Splice`)

Several small files are written as one (`gathered.py`).

Addresses don't change, so changes that are committed meanwhile stay valid and wait for the next
compaction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.formats.parquet import ROWS_PER_PAGE, WrittenBase
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import Edits
from lakesplice.planning.rows.overlay import overlay, state_columns, without_effect
from lakesplice.planning.rows.waiting_changes import OrderedChanges, WaitingChanges
from lakesplice.planning.upkeep.gathering import FILES_MIN, gatherings
from lakesplice.splicing.verify import verify_edits
from lakesplice.table.files.base_files import checked_base, create_base
from lakesplice.table.files.change_images import ImageWriter
from lakesplice.table.files.chosen_rows import KnownRows, chosen_rows
from lakesplice.table.files.page_rewriter import FALLBACK
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.files.plain_rewrite import PlainRewriter
from lakesplice.table.protocol.intents import Splice
from lakesplice.table.protocol.layout import base_path, partition_folder
from lakesplice.table.protocol.new_files import ChangeImages, NewFile
from lakesplice.table.protocol.ports import UNWATCHED, Entropy, Progress, Rewriter, Store, watched
from lakesplice.table.upkeep.gathered import Gathered, gather, may_gather


@dataclass(frozen=True)
class Compacted:
    """What a compaction wrote, to become visible by a `Splice`.

    replaced    the next version of each file by its path: files that became one have the same. A
                file is missing if all its changes were stale or had no effect; these count as
                applied
    consumed    by the path of each delta, the file groups whose changes were applied
    images      for the table's change feed; None if it has none

    `counts` has those of the rewriter, and

        changes                      the changes that were applied
        stale, unlinked              how many of them were so (`Edits`)
        rows                         the edited rows
        unchanged                    rows of files on which the changes had no effect
        pages_equal                  pages that got only values that they had already
        files_gathered               files that became one with others
        bytes_read, bytes_written    of base files
    """

    replaced: Mapping[str, NewFile]
    consumed: Mapping[str, frozenset[int]]
    counts: Mapping[str, int]
    schema_version: int
    images: tuple[ChangeImages, ...] | None = None


def compact_files(
    store: Store,
    manifest: Manifest,
    paths: Sequence[str],
    rewriter: Rewriter,
    entropy: Entropy,
    more: pa.Table | None = None,
    *,
    files_min: int = FILES_MIN,
    progress: Progress = UNWATCHED,
) -> Compacted:
    """Rewrite base files with the changes that `manifest` has waiting for them.

    `paths` name files of the manifest. At least `files_min` small ones become one, or a single one
    is written in the same way, without a splice. `more` are changes of their rows that are in no
    delta, in the layout of `delta_schema`. Memory holds the files' changes and about two row
    groups. Blocks; may be called again, and then writes under new names. Raises `CorruptFileError`
    for a damaged file or delta, and for a change whose key is not its row's, and `StorageError`;
    what was written by then is left for the vacuum.
    """
    files = [manifest.files[path] for path in paths]
    groups = {segment.group for file in files for segment in file.segments}
    changes = read_waiting(store, manifest.deltas, manifest.schema, groups)
    if more is not None:
        changes = pa.concat_tables([changes, more])
    writer = ImageWriter(store, manifest.schema, entropy) if manifest.feed is not None else None
    replaced, counts = rewrite_with(
        store,
        manifest,
        files,
        changes,
        rewriter,
        entropy,
        images=writer,
        gathers_from=files_min if more is None and may_gather(manifest) else None,
        tells=more is not None,
        progress=progress,
    )
    images = None
    if writer is not None:
        images = writer.finish() if replaced else ()
    consumed = {
        delta.file.path: frozenset(groups & delta.waiting.keys())
        for delta in manifest.deltas
        if not groups.isdisjoint(delta.waiting)
    }
    return Compacted(replaced, consumed, counts, manifest.schema.version, images)


def rewrite_with(
    store: Store,
    manifest: Manifest,
    files: Sequence[BaseFile],
    changes: pa.Table,
    rewriter: Rewriter,
    entropy: Entropy,
    *,
    images: ImageWriter | None,
    gathers_from: int | None = None,
    tells: bool = False,
    progress: Progress = UNWATCHED,
) -> tuple[Mapping[str, NewFile], Mapping[str, int]]:
    """Rewrite base files of `manifest` with changes in the layout of `delta_schema`; `images` gets
    the rows that change. `gathers_from` small files or more become one; None: each is rewritten by
    itself. `tells` says that some changes are in no delta, so that only the files tell them.

    Return the next version of each file by its path, without files on which no change had an
    effect, and the counts of `Compacted`. Blocks and raises as `compact_files`.
    """
    waiting = WaitingChanges.of(changes)
    replaced: dict[str, NewFile] = {}
    work = _Rewriting(store, manifest, rewriter, entropy, images, tells)
    work.counts["changes"] = changes.num_rows
    done = set[str]()
    given = frozenset(waiting.groups.tolist())
    changed = [one for one in files if not given.isdisjoint(s.group for s in one.segments)]
    for part in () if gathers_from is None else gatherings(changed, gathers_from):
        if (gathered := gather(store, manifest, part, waiting, entropy, images)) is not None:
            replaced |= work.count_gathered(part, gathered)
            done |= {file.path for file in watched(part, progress)}
    for file in watched([file for file in files if file.path not in done], progress):
        placed = waiting.for_file(file.segments, file.path)
        if len(placed.rows) and (new := work.next_version(file, placed)) is not None:
            replaced[file.path] = new
    return replaced, work.counts


@dataclass
class _Rewriting:
    store: Store
    manifest: Manifest
    rewriter: Rewriter
    entropy: Entropy
    images: ImageWriter | None
    tells: bool = False
    counts: Counter[str] = field(
        default_factory=lambda: Counter(changes=0, stale=0, rows=0, bytes_read=0, bytes_written=0)
    )

    def count_gathered(self, files: Sequence[BaseFile], found: Gathered) -> dict[str, NewFile]:
        """Count files that became one; return it by the path of each, nothing if none was
        written.
        """
        counts, edits, new = self.counts, found.edits, found.new
        counts["stale"] += edits.stale
        counts.update({"unlinked": edits.unlinked} if edits.unlinked else {})
        if new is None:
            return {}
        if len(files) > 1:
            counts["files_gathered"] += len(files)
        pages = math.ceil(new.base.rows / ROWS_PER_PAGE) * len(self.manifest.schema.arrow)
        encoded = new.base.bytes - new.base.tail_bytes
        for how, number, size in (("copied", 0, 0), ("encoded", pages, encoded)):
            counts.update({f"pages_{how}": number, f"bytes_{how}": size})
        counts["rows"] += len(edits.rows)
        counts["bytes_read"] += sum(file.bytes for file in files)
        counts["bytes_written"] += new.base.bytes
        return {file.path: new for file in files}

    def next_version(self, file: BaseFile, placed: OrderedChanges) -> NewFile | None:
        """Write a file's next version; return None if no change had an effect."""
        counts, schema, ordering = self.counts, self.manifest.schema, self.manifest.ordering
        with self.store.open(file.path, file.tail_bytes) as source:
            rows = placed.addressed
            names = state_columns(schema, ordering)
            state = chosen_rows(self.store, source, file, schema, rows, names)
            edits = overlay(placed, state, schema, file.path, ordering)
            counts["stale"] += edits.stale
            counts.update({"unlinked": edits.unlinked} if edits.unlinked else {})
            if not len(edits.rows):
                return None
            found = self.rewriter.compared(source, file, edits)
            if found.pages_equal:
                counts["pages_equal"] += found.pages_equal
            # A row may be as in the file, and yet another than a waiting change had made it.
            undone = self.tells and len(placed.rows) > len(rows)
            if without_effect(found.edits, ordering) and not undone:
                counts["unchanged"] += len(edits.rows)
                return None
            edits = found.edits
            new, more = rewrite_base(
                store=self.store,
                source=source,
                file=file,
                edits=edits,
                schema=schema,
                rewriter=self.rewriter,
                entropy=self.entropy,
            )
            if self.images is not None:
                self.images.rewritten(source, file, edits, KnownRows(rows, state))
        counts.update(more)
        counts["rows"] += len(edits.rows)
        counts["bytes_read"] += file.bytes
        counts["bytes_written"] += new.base.bytes
        return new


def splice_of(generation: int, planned_on: int, parts: Sequence[Compacted]) -> Splice:
    """Return one commit for the work of several tasks, each of which compacted other files of the
    version `planned_on`.
    """
    consumed: dict[str, frozenset[int]] = {}
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
        for path, groups in part.consumed.items():
            consumed[path] = consumed.get(path, frozenset()) | groups
    replaced = {path: new for part in parts for path, new in part.replaced.items()}
    version = min((part.schema_version for part in parts), default=None)
    images = _united_images(parts)
    return Splice(
        generation,
        replaced,
        consumed,
        dict(sorted(counts.items())),
        planned_on,
        version,
        images=images,
    )


def _united_images(parts: Sequence[Compacted]) -> tuple[ChangeImages, ...] | None:
    if any(part.images is None for part in parts):
        return None
    return tuple(one for part in parts for one in part.images or ())


def rewrite_base(
    store: Store,
    source: pa.NativeFile,
    file: BaseFile,
    edits: Edits,
    schema: TableSchema,
    rewriter: Rewriter,
    entropy: Entropy,
) -> tuple[NewFile, Mapping[str, int]]:
    """Write a base file's next version and check it; return it and the rewriter's counts.

    `source` is the file, open. Blocks. `CorruptFileError` if the new file doesn't have the intended
    values.
    """
    written: list[WrittenBase] = []

    def write(sink: pa.NativeFile) -> WrittenBase:
        written.append(rewriter.rewrite(source, file, edits, schema, sink))
        return written[0]

    def write_plainly(sink: pa.NativeFile) -> WrittenBase:
        plain = PlainRewriter(store.row_group_bytes).rewrite(source, file, edits, schema, sink)
        written.append(replace(plain, counts={FALLBACK + "late": 1}))
        return written[0]

    def check(found: pa.NativeFile, base: BaseFile) -> None:
        """Read the edited values back: only a file that can be read, and has these values, is
        committed.
        """
        checked_base(found, base, schema)
        verify_edits(found, base.path, edits)

    create = partial(_create_next, store, file, schema, entropy, check)
    try:
        new = create(write)
    except UnsupportedError:
        # The files that were written are deleted; a name is used only once.
        new = create(write_plainly)
    return new, written[-1].counts


def _create_next(
    store: Store,
    file: BaseFile,
    schema: TableSchema,
    entropy: Entropy,
    check: Callable[[pa.NativeFile, BaseFile], None],
    write: Callable[[pa.NativeFile], WrittenBase],
) -> NewFile:
    splices = file.splices + 1
    folder = partition_folder(schema.partitioned_by, file.partition)
    path = base_path(file.segments[0].group, splices, entropy, folder)
    hint = file.tail_bytes + file.tail_bytes // 8
    return create_base(
        store,
        path,
        file.segments,
        write,
        splices=splices,
        tail_hint=hint,
        partition=file.partition,
        check=check,
    )
