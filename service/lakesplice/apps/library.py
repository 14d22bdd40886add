"""What Python programs import: `lakesplice.Table`, wired to the storage that its address names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pyarrow as pa

from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.places import AnyStore, log_keeper, open_sink, open_store
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.facade import Moment, asked_version
from lakesplice.table.hand_fed import THREADS, HandFedTable, Rows, Tools, create_table
from lakesplice.table.rewriters import best_rewriter


class Table(HandFedTable):
    """A table of a lake; open it by its folder, or make one that is fed by hand."""

    @classmethod
    def open(
        cls,
        uri: str | Path,
        *,
        version: int | None = None,
        as_of: Moment | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a table by its folder, `<lake>/<database>/<table>`: a path, or an address that
        starts with `file:`, `s3:`, `gs:` or `az:`.

        The newest version is opened, or a given one, or the one that was the newest at a moment
        (see `Table.scan`). `options` say how to reach an object store, as
        `aws_endpoint` does; what isn't given comes from the environment. Blocks on reading the log
        and the manifest. Raises `TableNotFoundError`, `VersionNotFoundError`, `StorageError`, and
        `UsageError` for another address.
        """
        store = open_store(uri, options)
        return cls(store, _tools(store), asked_version(store, version, as_of))

    @classmethod
    def create(
        cls,
        uri: str | Path,
        data: pa.Schema | Rows,
        *,
        key: Sequence[str],
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a table that is fed by hand, with the rows of `data` or, given a schema, without.

        `uri` and `options` are as for `open`; `key` names its key columns. Blocks; a stream is
        written as it comes. Either all of it is visible or nothing. `UsageError` if the folder
        holds a table, for a column type without an exact counterpart, and if a key is null or
        occurs twice.
        """
        store = open_store(uri, options)
        tools = _tools(store)
        create_table(store, data, key, tools)
        return cls(store, tools)


def _tools(store: AnyStore) -> Tools:
    return Tools(
        SystemClock(),
        SystemEntropy(),
        best_rewriter(open_sink, THREADS, ScratchFile),
        log_keeper(store),
    )
