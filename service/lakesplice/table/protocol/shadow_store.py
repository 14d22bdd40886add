"""Shadows: a table's content while it is filled again, invisible until it takes the table's place.

A shadow has its own log and manifests, in a folder of the table that readers of the log skip. All
its other files are among the table's, so the commit by which it takes the table's place only has to
name them:

    _lakesplice/shadows/<id>/plan.json        its source and chunks; the shadow is open while this
                                              file exists
    _lakesplice/shadows/<id>/_delta_log/…     its log
    _lakesplice/shadows/<id>/_lakesplice/…    its manifests
    base/…, _lakesplice/deltas/…, …           its other files, beside the table's

Only its log says which files a shadow needs. So while one is open, no orphans of the table are
deleted (`table/upkeep/orphans.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa

from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.layout import LOG, MANIFESTS, SHADOWS
from lakesplice.table.protocol.ports import Store

_PLAN = "plan.json"
_OWN = (f"{LOG}/", f"{MANIFESTS}/")


class ShadowStore:
    """The `Store` of a table's folder, in which the log and the manifests are a shadow's."""

    def __init__(self, store: Store, shadow: str) -> None:
        self._store = store
        self._folder = f"{shadow_folder(shadow)}/"

    def __repr__(self) -> str:
        return f"ShadowStore({self._store!r}, {self._folder!r})"

    def __str__(self) -> str:
        """Its path."""
        return f"{self._store}/{self._folder}"

    @property
    def row_group_bytes(self) -> int:
        """See `Store.row_group_bytes`."""
        return self._store.row_group_bytes

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`."""
        return self._store.put_new(self._at(path), data)

    def writer(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """See `Store.writer`."""
        return self._store.writer(self._at(path))

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        return self._store.read(self._at(path))

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        """See `Store.open`."""
        return self._store.open(self._at(path), tail_bytes)

    def size(self, path: str) -> int | None:
        """See `Store.size`."""
        return self._store.size(self._at(path))

    def modified_ms(self, path: str) -> EpochMs | None:
        """See `Store.modified_ms`."""
        return self._store.modified_ms(self._at(path))

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`; the prefix is within the log or the manifests, or outside of both."""
        at = self._at(prefix)
        own = len(at) - len(prefix)
        return (path[own:] for path in self._store.list(at))

    def folders(self, folder: str = "") -> Sequence[str]:
        """See `Store.folders`."""
        return self._store.folders(folder)

    def delete(self, path: str) -> None:
        """See `Store.delete`."""
        self._store.delete(self._at(path))

    def within(self, folder: str) -> Store:
        """See `Store.within`."""
        return self._store.within(folder)

    def _at(self, path: str) -> str:
        return f"{self._folder}{path}" if path.startswith(_OWN) else path


def shadow_folder(shadow: str) -> str:
    """Return the folder of a shadow's own files."""
    return f"{SHADOWS}/{shadow}"


def shadow_plan_path(shadow: str) -> str:
    """Return the path of the file with a shadow's plan: its source and chunks."""
    return f"{shadow_folder(shadow)}/{_PLAN}"


def open_shadows(store: Store) -> list[str]:
    """Return the table's open shadows in the order of their names. Blocks: lists them."""
    found = store.folders(SHADOWS)
    return [name for name in found if store.size(shadow_plan_path(name)) is not None]


def close_all_shadows(store: Store) -> int:
    """Close all shadows that are open, and return their number. Blocks; may be called again."""
    found = open_shadows(store)
    for shadow in found:
        close_shadow(store, shadow)
    return len(found)


def close_shadow(store: Store, shadow: str) -> None:
    """Close a shadow, then delete its log and manifests. Blocks; may be called again.

    Its other files are kept: the table names them by now, or they are orphans.
    """
    store.delete(shadow_plan_path(shadow))
    for path in sorted(store.list(f"{shadow_folder(shadow)}/")):
        store.delete(path)
