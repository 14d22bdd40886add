"""`splice_file`: a Parquet file's next version, from the file and a file of changes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.apps.library.new_file import appearing, opened, options_for, refuse_existing
from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.model.names import names_list
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.comparing import compared
from lakesplice.splicing.matching import MatchedChanges, match_by_key, match_by_position
from lakesplice.splicing.options import Options
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.structures.decoding import reading
from lakesplice.splicing.structures.footer import read_footer
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.verify import verify_edits
from lakesplice.splicing.whole_rewrite import rewrite_whole
from lakesplice.storage.copying import FileSink
from lakesplice.table.protocol.ports import UNWATCHED, Progress


@dataclass(frozen=True, slots=True)
class SpliceSummary:
    """What `splice_file` did.

    `rows_changed` of the file's `rows` got new values in `columns`; `unmatched` changes have a key
    that no row has. Pages and bytes were copied or encoded; `pages_equal` pages got only values
    that they already had, so they were not encoded. `encoded_whole` names columns of which a whole
    chunk was encoded, with the reason; `rewritten` is why the whole file had to be rewritten, or
    None. Bytes are those of whole files.
    """

    rows: int
    rows_changed: int
    unmatched: int
    columns: tuple[str, ...]
    pages_copied: int
    pages_encoded: int
    pages_equal: int
    bytes_copied: int
    bytes_encoded: int
    bloom_filters_dropped: int
    bytes_before: int
    bytes_after: int
    seconds: float
    encoded_whole: Mapping[str, str] = field(default_factory=dict)
    rewritten: str | None = None


def splice_file(
    source: str | Path,
    changes: str | Path | pa.Table,
    target: str | Path,
    *,
    key: str | Sequence[str] | None = None,
    by_position: str | None = None,
    require_all: bool = False,
    threads: int | None = None,
    verify: bool = True,
    erase: bool = False,
    progress: Progress = UNWATCHED,
) -> SpliceSummary:
    """Write `source` with `changes` to the new file `target`, encoding only pages that change.

    `changes` is a Parquet file or an Arrow table, one row for each row to change. They are found by
    the columns of `key`, or by their position, from 0, in the column `by_position`. Every other
    column of `changes` replaces the values of the file's column of that name, nulls included;
    columns that `changes` lacks are unchanged. A change whose key no row has is counted, or with
    `require_all` refused. `threads` columns are encoded at a time, by default one per core up to 8;
    `verify` reads back what was encoded. With `erase` nothing remains of the values that are
    replaced, in dictionaries either. `progress` counts bytes of the source, by those of the target
    that are written.

    The target appears whole or not at all, and is on disk when this returns. Memory holds the
    changes and bounded pieces of the file. Blocks. Raises `UsageError` for changes that don't fit,
    `CorruptFileError` for a damaged source, `UnsupportedError` for one that is encrypted or can't
    be written again, `StorageError`.
    """
    started = time.monotonic()
    source, target = Path(source), Path(target)
    refuse_existing(target)
    with opened(source) as file:
        table = changes if isinstance(changes, pa.Table) else _read_changes(Path(changes))
        matched = _matched(file, str(source), table, key, by_position)
        if require_all and matched.unmatched:
            raise UsageError(
                "changes have a key that no row of the file has", changes=matched.unmatched
            )
        options = options_for(threads, verify=verify, erase=erase)
        new = compared(SourceFile(file, str(source)), matched.edits, options)
        progress.expect(source.stat().st_size)
        outcome = _written(file, source, new.edits, target, options, progress)
    return _summary(source, target, outcome, matched, new.pages_equal, started)


@dataclass(frozen=True, slots=True)
class _Outcome:
    rows: int
    spliced: Spliced | None
    rewritten: str | None
    bloom_filters_dropped: int


class _WatchedSink(FileSink):
    """A file whose bytes are counted while they are written."""

    def __init__(self, stream: pa.NativeFile, progress: Progress) -> None:
        super().__init__(stream)
        self._progress = progress

    def write(self, data: Any) -> None:
        """See `Sink.write`."""
        before = self.tell()
        super().write(data)
        self._progress.advance(self.tell() - before)

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        """See `Sink.copy`."""
        super().copy(source, offset, length)
        self._progress.advance(length)


def _written(
    file: pa.NativeFile,
    source: Path,
    edits: Edits,
    target: Path,
    options: Options,
    progress: Progress,
) -> _Outcome:
    def holds_the_edits(written: pa.NativeFile, path: str) -> None:
        if options.verify:
            verify_edits(written, path, edits)

    try:
        with appearing(target, holds_the_edits) as stream:
            done = splice(file, str(source), edits, _WatchedSink(stream, progress), options)
        return _Outcome(done.rows, done, None, done.bloom_filters_dropped)
    except UnsupportedError as refusal:
        reason = str(refusal.facts.get("reason", refusal.message))
    groups = read_footer(file, str(source)).row_groups
    blooms = sum(bool(chunk.bloom_offset) for group in groups for chunk in group.chunks)
    with appearing(target) as stream:
        return _Outcome(rewrite_whole(file, str(source), edits, stream), None, reason, blooms)


def _summary(
    source: Path,
    target: Path,
    outcome: _Outcome,
    matched: MatchedChanges,
    pages_equal: int,
    started: float,
) -> SpliceSummary:
    done = outcome.spliced
    whole = target.stat().st_size if done is None else 0
    return SpliceSummary(
        rows=outcome.rows,
        rows_changed=len(matched.edits.rows),
        unmatched=matched.unmatched,
        columns=tuple(matched.edits.columns),
        pages_copied=done.pages_copied if done else 0,
        pages_encoded=done.pages_encoded if done else 0,
        pages_equal=pages_equal,
        bytes_copied=done.bytes_copied if done else 0,
        bytes_encoded=done.bytes_encoded if done else whole,
        bloom_filters_dropped=outcome.bloom_filters_dropped,
        bytes_before=source.stat().st_size,
        bytes_after=target.stat().st_size,
        seconds=time.monotonic() - started,
        encoded_whole={name: str(why) for name, why in done.columns_whole.items()} if done else {},
        rewritten=outcome.rewritten,
    )


def _matched(
    source: pa.NativeFile,
    name: str,
    changes: pa.Table,
    key: str | Sequence[str] | None,
    by_position: str | None,
) -> MatchedChanges:
    if (key is None) == (by_position is None):
        raise UsageError("say how to find rows: by key, or by position")
    if by_position is not None:
        return match_by_position(source, name, changes, by_position)
    columns = names_list(key or ())
    if not columns or len(set(columns)) < len(columns):
        raise UsageError("the key needs at least one column, and each column once", key=columns)
    return match_by_key(source, name, changes, columns)


def _read_changes(path: Path) -> pa.Table:
    with opened(path) as file:
        read_footer(file, str(path))  # first, since pyarrow ends the process on encrypted columns
        with reading(str(path), "changes"):
            return pq.ParquetFile(file, pre_buffer=False).read()
