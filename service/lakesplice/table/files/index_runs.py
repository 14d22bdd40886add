"""Index runs on the store: written once, opened once per process, merged into one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.formats.checksum import Checksum, verify
from lakesplice.formats.rowindex import Entries, Run, RunEncoder, encode_run
from lakesplice.model.arrays import KeyHashes, Mask, RowAddresses
from lakesplice.model.manifest import FileRef, Manifest, RunRef
from lakesplice.planning.rows.index_merge import concatenated, merge_runs, sorted_entries
from lakesplice.planning.rows.locate import locate
from lakesplice.table.files.whole_files import put_file
from lakesplice.table.protocol.layout import run_path
from lakesplice.table.protocol.ports import Entropy, Store

OPEN_BYTES_MAX = 2 << 30
OPEN_RUNS_MAX = 8192


class RunCache:
    """The index runs that a process has open; each was compared with its checksum when it was
    opened.

    Bounded by `bytes_max` and `runs_max`: the least recently used runs are closed, except for those
    of the running call. If the store maps files into memory, an open run costs address space, and
    pages that the system may take back at any time. Safe from several threads.
    """

    def __init__(self, bytes_max: int = OPEN_BYTES_MAX, runs_max: int = OPEN_RUNS_MAX) -> None:
        self._bytes_max = bytes_max
        self._runs_max = runs_max
        self._open: OrderedDict[FileRef, Run] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def open_runs(self, store: Store, refs: Sequence[RunRef]) -> tuple[Run, ...]:
        """Return the runs in the order of `refs`.

        Blocks: reads those that aren't open yet. `MissingFileError` if one doesn't exist,
        `CorruptFileError` if one isn't what was written.
        """
        runs = tuple(self._run(store, ref) for ref in refs)
        with self._lock:
            self._let_go(keep=len(refs))
        return runs

    def _run(self, store: Store, ref: RunRef) -> Run:
        with self._lock:
            known = self._open.get(ref.file)
            if known is not None:
                self._open.move_to_end(ref.file)
                return known
        run = open_run(store, ref)
        with self._lock:
            if ref.file not in self._open:
                self._open[ref.file] = run
                self._bytes += ref.file.bytes
        return run

    def _let_go(self, keep: int) -> None:
        while len(self._open) > keep and (
            self._bytes > self._bytes_max or len(self._open) > self._runs_max
        ):
            file, _ = self._open.popitem(last=False)
            self._bytes -= file.bytes


def open_run(store: Store, ref: RunRef) -> Run:
    """Open one run and check its checksum; errors as in `RunCache.open_runs`."""
    with store.open(ref.file.path) as source:
        buffer = source.read_buffer()
    verify(buffer, ref.file)
    run = Run.from_buffer(buffer, ref.file.path)
    if len(run) != ref.entries:
        raise CorruptFileError(
            "an index run has another number of entries than recorded; rebuild the index",
            path=ref.file.path,
            entries=len(run),
            recorded_entries=ref.entries,
        )
    return run


def located(store: Store, manifest: Manifest, keys: KeyHashes, cache: RunCache) -> RowAddresses:
    """Look keys up in the row index of a version; the result is that of `locate`."""
    runs = cache.open_runs(store, manifest.runs)
    return locate(runs, keys, np.array(sorted(manifest.groups), np.int64))


def are_indexed_at(
    store: Store, manifest: Manifest, keys: KeyHashes, addresses: RowAddresses
) -> Mask:
    """Mark the keys for which the row index of a version has exactly these addresses."""
    found = located(store, manifest, keys, RunCache())
    same: Mask = (found.group == addresses.group) & (found.row == addresses.row)
    return same


def put_run(store: Store, ordered: Entries, entropy: Entropy) -> RunRef:
    """Create a run durably from entries that ascend by key hash; nothing names it yet."""
    file = put_file(store, run_path(entropy), encode_run(*ordered))
    return RunRef(file, len(ordered.high))


def write_entries(store: Store, pieces: Sequence[Entries], entropy: Entropy) -> RunRef | None:
    """Sort entries, and write them as one run; None if there are none."""
    ordered, _ = sorted_entries(concatenated(pieces))
    return put_run(store, ordered, entropy) if len(ordered.high) else None


def write_run(store: Store, path: str, blocks: Iterable[Entries], entries_max: int) -> RunRef:
    """Create a run durably from blocks that ascend by key hash and have at most `entries_max`
    entries.

    One block and the fences are in memory. Nothing names the file yet; if `blocks` raises, it is
    removed.
    """
    encoder, running, entries = RunEncoder(entries_max), Checksum(), 0
    with store.writer(path) as sink:
        for block in blocks:
            _write(sink, running, encoder.add(block))
            entries += len(block.high)
        _write(sink, running, encoder.finish())
    return RunRef(FileRef(path, running.bytes, running.digest()), entries)


def write_merged(store: Store, refs: Sequence[RunRef], cache: RunCache, entropy: Entropy) -> RunRef:
    """Write the run that replaces `refs`, which are neighbours in the index, oldest first."""
    runs = cache.open_runs(store, refs)
    entries_max = sum(len(run) for run in runs)
    return write_run(store, run_path(entropy), merge_runs(runs), entries_max)


def _write(sink: pa.NativeFile, running: Checksum, piece: bytes) -> None:
    sink.write(piece)
    running.update(piece)
