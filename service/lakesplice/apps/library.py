"""What Python programs import: `lakesplice.Table`, wired to the storage that its address names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.storage.copying import FileSink, ScratchFile
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.facade import Moment, asked_version
from lakesplice.table.hand_fed import THREADS, HandFedTable, Rows, Tools, create_table
from lakesplice.table.rewriters import best_rewriter


class Table(HandFedTable):
    """A table of a lake; open it by its folder, or make one that is fed by hand."""

    @classmethod
    def open(
        cls, uri: str | Path, *, version: int | None = None, as_of: Moment | None = None
    ) -> Self:
        """Open a table by its folder, `<lake>/<database>/<table>`, as a path or a `file:` address.

        The newest version is opened, or a given one, or the one that was the newest at a moment
        (see `Table.scan`). Blocks on reading the log and the manifest.
        Raises `TableNotFoundError`, `VersionNotFoundError`, `UnsupportedError` for other storage.
        """
        path = _local_path(uri)
        store = LocalStore(path)
        return cls(store, _tools(path), asked_version(store, version, as_of))

    @classmethod
    def create(cls, uri: str | Path, data: pa.Schema | Rows, *, key: Sequence[str]) -> Self:
        """Make a table that is fed by hand, with the rows of `data` or, given a schema, without.

        `uri` is its folder, as for `open`; `key` names its key columns. Blocks; a stream is written
        as it comes. Either all of it is visible or nothing. `UsageError` if the folder holds a
        table, for a column type without an exact counterpart, and if a key is null or occurs twice.
        """
        path = _local_path(uri)
        store, tools = LocalStore(path), _tools(path)
        create_table(store, data, key, tools)
        return cls(store, tools)


def _tools(path: Path) -> Tools:
    return Tools(
        SystemClock(),
        SystemEntropy(),
        best_rewriter(FileSink, THREADS, ScratchFile),
        DeltaLogKeeper(path),
    )


def _local_path(uri: str | Path) -> Path:
    if isinstance(uri, Path) or "://" not in uri:
        return Path(uri)
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise UnsupportedError("only tables on a local disk can be opened; give a path", uri=uri)
    return Path(unquote(parts.path))
