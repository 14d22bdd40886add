"""`splice_file`: a Parquet file's next version, from the file and a file of changes."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import StorageError, UnsupportedError, UsageError
from lakesplice.planning.edits import Edits
from lakesplice.splicing.decoding import reading
from lakesplice.splicing.footer import read_footer
from lakesplice.splicing.matching import Matched, match_by_key, match_by_position
from lakesplice.splicing.options import Options
from lakesplice.splicing.splice import Spliced, splice
from lakesplice.splicing.whole import rewrite_whole
from lakesplice.storage.copying import FileSink, ScratchFile
from lakesplice.storage.local import LocalStore

_THREADS_MAX = 8


@dataclass(frozen=True, slots=True)
class SpliceSummary:
    """What `splice_file` did.

    `rows_changed` of the file's `rows` got new values in `columns`; `unmatched` changes have a key
    that no row has. Pages and bytes were copied as they were or encoded anew. `encoded_whole` names
    columns of which a part was encoded anew throughout, with the reason; `rewritten` is why the
    whole file had to be, or None. Bytes are those of whole files.
    """

    rows: int
    rows_changed: int
    unmatched: int
    columns: tuple[str, ...]
    pages_copied: int
    pages_encoded: int
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
) -> SpliceSummary:
    """Write `source` with `changes` to the new file `target`, encoding only pages that change.

    `changes` is a Parquet file or an Arrow table, one row for each row to change. They are found by
    the columns of `key`, or by their position, from 0, in the column `by_position`. Every other
    column of `changes` replaces the values of the file's column of that name, nulls included;
    columns that `changes` lacks stay as they are. A change whose key no row has is counted, or with
    `require_all` refused. `threads` columns are encoded at a time, by default one per core up to 8;
    `verify` reads back what was encoded.

    The target appears whole or not at all, and is on disk when this returns. Memory holds the
    changes and bounded pieces of the file. Blocks. Raises `UsageError` for changes that don't fit,
    `CorruptFileError` for a damaged source, `UnsupportedError` for one that is encrypted or can't
    be written again, `StorageError`.
    """
    started = time.monotonic()
    source, target = Path(source), Path(target)
    if target.exists():
        raise UsageError("the target exists; choose another name", target=str(target))
    with _opened(source) as opened:
        table = changes if isinstance(changes, pa.Table) else _read_changes(Path(changes))
        matched = _matched(opened, str(source), table, key, by_position)
        if require_all and matched.unmatched:
            raise UsageError(
                "changes have a key that no row of the file has", changes=matched.unmatched
            )
        options = Options(
            threads=threads or min(os.cpu_count() or 1, _THREADS_MAX),
            verify=verify,
            open_scratch=ScratchFile,
        )
        outcome = _written(opened, source, matched.edits, target, options)
    done = outcome.spliced
    whole = target.stat().st_size if done is None else 0
    return SpliceSummary(
        rows=outcome.rows,
        rows_changed=len(matched.edits.rows),
        unmatched=matched.unmatched,
        columns=tuple(matched.edits.columns),
        pages_copied=done.pages_copied if done else 0,
        pages_encoded=done.pages_encoded if done else 0,
        bytes_copied=done.bytes_copied if done else 0,
        bytes_encoded=done.bytes_encoded if done else whole,
        bloom_filters_dropped=done.bloom_filters_dropped if done else 0,
        bytes_before=source.stat().st_size,
        bytes_after=target.stat().st_size,
        seconds=time.monotonic() - started,
        encoded_whole={name: str(why) for name, why in done.columns_whole.items()} if done else {},
        rewritten=outcome.rewritten,
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    rows: int
    spliced: Spliced | None
    rewritten: str | None


def _written(
    opened: pa.NativeFile, source: Path, edits: Edits, target: Path, options: Options
) -> _Outcome:
    try:
        with _appearing(target) as stream:
            done = splice(opened, str(source), edits, FileSink(stream), options)
        return _Outcome(done.rows, done, None)
    except UnsupportedError as refusal:
        reason = str(refusal.facts.get("reason", refusal.message))
    with _appearing(target) as stream:
        return _Outcome(rewrite_whole(opened, str(source), edits, stream), None, reason)


def _matched(
    source: pa.NativeFile,
    name: str,
    changes: pa.Table,
    key: str | Sequence[str] | None,
    by_position: str | None,
) -> Matched:
    if (key is None) == (by_position is None):
        raise UsageError("say how rows are found: by key, or by position")
    if by_position is not None:
        return match_by_position(source, name, changes, by_position)
    columns = [key] if isinstance(key, str) else list(key or ())
    if not columns or len(set(columns)) < len(columns):
        raise UsageError("the key needs one column at least, and each once", key=columns)
    return match_by_key(source, name, changes, columns)


@contextmanager
def _opened(path: Path) -> Iterator[pa.NativeFile]:
    with LocalStore(path.parent).open(path.name) as source:
        yield source


def _read_changes(path: Path) -> pa.Table:
    with _opened(path) as opened:
        read_footer(opened, str(path))  # first, since pyarrow ends the process on encrypted columns
        with reading(str(path), "changes"):
            return pq.ParquetFile(opened, pre_buffer=False).read()


@contextmanager
def _appearing(target: Path) -> Iterator[pa.NativeFile]:
    """Yield a sink whose content gets its name when it is complete and on disk.

    `UsageError` if meanwhile somebody else made a file of that name.
    """
    store = LocalStore(target.parent)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    try:
        with store.writer(partial.name) as sink:
            yield sink
        _link(partial, target)
    finally:
        with suppress(OSError):
            partial.unlink()


def _link(partial: Path, target: Path) -> None:
    try:
        os.link(partial, target)
    except FileExistsError:
        raise UsageError("the target exists; choose another name", target=str(target)) from None
    except OSError as error:
        raise StorageError(
            "the target can't be named", target=str(target), cause=str(error)
        ) from None
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
