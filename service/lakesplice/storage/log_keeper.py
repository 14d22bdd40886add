"""Checkpoints by deltalake, whose local store syncs nothing: what it wrote is synced here."""

from __future__ import annotations

import os
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakesplice.errors import StorageError

_LOG = "_delta_log"


class DeltaLogKeeper:
    """`LogKeeper` of the table in a local folder."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def checkpoint(self, version: int) -> None:
        """See `LogKeeper.checkpoint`."""
        log = self._root / _LOG
        try:
            DeltaTable(str(self._root), version=version).create_checkpoint()
            written = sorted(log.glob(f"{version:020d}.checkpoint*"))
            for path in (*written, log / "_last_checkpoint", log):
                _sync(path)
        except (DeltaError, OSError) as error:
            raise StorageError(
                f"the checkpoint could not be written: {error}; it is tried again later",
                path=str(log),
                version=version,
            ) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
