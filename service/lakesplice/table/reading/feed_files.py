"""Finds the files from which a version's changes are read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lakesplice.errors import UnsupportedError, VersionNotFoundError
from lakesplice.model.address import BaseFile
from lakesplice.model.arrays import Mask
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.merged_upserts import files_of_merge
from lakesplice.table.reading.versions import read_version


def sizes_of_changes(
    store: Store, versions: range, known: Mapping[int, Manifest]
) -> list[list[int]]:
    """Return for each version the size in bytes of each file from which its changes are read.

    `known` has manifests by version, which need not be read. If the version before the first one
    can't be read, all files of the first version count; whether it is needed shows when changes are
    read. `VersionNotFoundError` if one of the others is no longer retained.
    """

    def manifest(number: int) -> Manifest:
        return known.get(number) or read_version(store, number).manifest

    try:
        before = manifest(versions.start - 1) if versions.start else Manifest(0)
    except (VersionNotFoundError, UnsupportedError):
        before = Manifest(0)
    found = list[list[int]]()
    for number in versions:
        now = manifest(number)
        found.append([*new_files(now, before).values()])
        before = now
    return found


def new_deltas(now: Manifest, before: Manifest) -> list[DeltaRef]:
    """Return the deltas that a version added."""
    known = {delta.file.path for delta in before.deltas}
    return [delta for delta in now.deltas if delta.file.path not in known]


def new_files(now: Manifest, before: Manifest) -> dict[str, int]:
    """Return the sizes in bytes, by path, of base files with new file groups, of new deltas, and of
    the files that an upsert wrote with its changes.
    """
    old, files = before.groups, now.files
    added = {p: f.bytes for p, f in files.items() if any(s.group not in old for s in f.segments)}
    changed = {delta.file.path: delta.file.bytes for delta in new_deltas(now, before)}
    return added | changed | {file.path: file.bytes for file in files_of_merge(now, before)}


def in_order(files: Mapping[str, BaseFile]) -> list[BaseFile]:
    """Return files in the order of their paths."""
    return [files[path] for path in sorted(files)]


def rows_of_new(file: BaseFile, old: frozenset[int]) -> Mask | None:
    """Return which rows of a file belong to file groups that aren't old; None if no row does."""
    parts = [np.full(s.rows, s.group not in old, np.bool_) for s in file.segments]
    found = np.concatenate(parts) if parts else np.zeros(0, np.bool_)
    return found if found.any() else None
