"""Checkpoints written by deltalake, whose local store syncs nothing: the files that it wrote are
synced here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakesplice.errors import StorageError
from lakesplice.storage.local import sync

_LOG = "_delta_log"


class LogFiles(Protocol):
    """A table's files by their relative paths, of which the log's checkpoints may be replaced."""

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole file, durably, in the place of another; readers see one or the other."""
        ...


class LocalFiles:
    """`LogFiles` of a local folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes:
        """See `LogFiles.read`."""
        return (self._root / path).read_bytes()

    def replace(self, path: str, data: bytes) -> None:
        """See `LogFiles.replace`."""
        beside = self._root / f"{path}.new"
        beside.write_bytes(data)
        sync(beside)
        beside.replace(self._root / path)


class DeltaLogKeeper:
    """`LogKeeper` of the table in a local folder or, with a scheme, at an address."""

    def __init__(
        self,
        root: str | Path,
        options: Mapping[str, str] | None = None,
        files: LogFiles | None = None,
    ) -> None:
        self._root, self._options = str(root), dict(options or {})
        self._files = files or LocalFiles(Path(root))

    def checkpoint(self, version: int) -> None:
        """See `LogKeeper.checkpoint`."""
        try:
            table = DeltaTable(self._root, version=version, storage_options=self._options)
            table.create_checkpoint()
            if "://" not in self._root:
                self._sync(version)
        except (DeltaError, OSError) as error:
            raise StorageError(
                f"the checkpoint could not be written: {error}; it will be retried later",
                path=f"{self._root}/{_LOG}",
                version=version,
            ) from error

    def checkpoint_without_removed(self, version: int) -> None:
        """See `LogKeeper.checkpoint_without_removed`; the checkpoint takes the place of the whole
        one, at once.
        """
        self.checkpoint(version)
        path = f"{_LOG}/{version:020d}.checkpoint.parquet"
        try:
            actions = pq.read_table(io.BytesIO(self._files.read(path)))
            kept = actions.filter(actions["remove"].is_null())
            written = io.BytesIO()
            pq.write_table(kept, written)
            self._files.replace(path, written.getvalue())
            added = kept.num_rows - kept["add"].null_count
            hint = {"version": version, "size": kept.num_rows, "numOfAddFiles": added}
            self._files.replace(f"{_LOG}/_last_checkpoint", json.dumps(hint).encode())
            if "://" not in self._root:
                self._sync(version)
        except OSError as error:
            raise StorageError(
                f"the checkpoint could not be written: {error}; try again",
                path=f"{self._root}/{_LOG}",
                version=version,
            ) from error

    def _sync(self, version: int) -> None:
        log = Path(self._root, _LOG)
        written = sorted(log.glob(f"{version:020d}.checkpoint*"))
        for path in (*written, log / "_last_checkpoint", log):
            sync(path)
