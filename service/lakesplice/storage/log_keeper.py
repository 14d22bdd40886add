"""Checkpoints written by deltalake, whose local store syncs nothing: the files that it wrote are
synced here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakesplice.errors import StorageError
from lakesplice.storage.local import sync

_LOG = "_delta_log"


class DeltaLogKeeper:
    """`LogKeeper` of the table in a local folder or, with a scheme, at an address."""

    def __init__(self, root: str | Path, options: Mapping[str, str] | None = None) -> None:
        self._root, self._options = str(root), dict(options or {})

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

    def _sync(self, version: int) -> None:
        log = Path(self._root, _LOG)
        written = sorted(log.glob(f"{version:020d}.checkpoint*"))
        for path in (*written, log / "_last_checkpoint", log):
            sync(path)
