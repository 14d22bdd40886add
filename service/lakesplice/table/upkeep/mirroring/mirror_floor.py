"""The floor of a table's Iceberg mirror: the oldest version whose files the mirror still reads.

It is in the name of an empty file in the table's folder, not in the manifest. So every process that
deletes files of old versions finds it without a catalog, and mirrors make no commits:

    _lakesplice/iceberg/<incarnation>/floor-<version>

An incarnation is one Iceberg table, whose metadata files are in the same folder. An incarnation
without a floor has ended: an erasure deletes floors first, then the manifests, which have bounds of
the erased rows. From then on the Iceberg table can't be read, and whatever maintains it begins a
new one. So either may come first, the erasure or a mirror's commit.
"""

from __future__ import annotations

import re

from lakesplice.table.protocol.layout import MIRRORS, random_name
from lakesplice.table.protocol.ports import Entropy, Store

_FLOOR = re.compile(rf"{MIRRORS}/([0-9a-f]+)/floor-(\d+)")
# Manifests and lists of manifests; the metadata beside them has no values of rows.
_WITH_BOUNDS = ".avro"


def new_incarnation(entropy: Entropy) -> str:
    """Return a name that no other incarnation has."""
    return random_name(entropy)


def incarnation_folder(incarnation: str) -> str:
    """The folder of an incarnation's metadata files, relative to the table."""
    return f"{MIRRORS}/{incarnation}"


def floors(store: Store) -> dict[str, int]:
    """Return the floor of each incarnation that has one. Blocks: a listing of a small folder.

    While a floor is raised it has two files, of which the lower counts.
    """
    found: dict[str, int] = {}
    for path in store.list(f"{MIRRORS}/"):
        match = _FLOOR.fullmatch(path)
        if match is not None:
            version = int(match[2])
            found[match[1]] = min(version, found.get(match[1], version))
    return found


def mirror_floor(store: Store) -> int | None:
    """Return the oldest version that an Iceberg mirror still reads; None without a mirror."""
    return min(floors(store).values(), default=None)


def begin_floor(store: Store, incarnation: str, version: int) -> None:
    """Give a new incarnation its floor."""
    store.put_new(_path(incarnation, version), b"")


def raise_floor(store: Store, incarnation: str, version: int) -> bool:
    """Raise the floor of an incarnation to a higher version; False if the incarnation has ended.

    May be called again after any error. An erasure may end the incarnation at the same time: it
    finds either the new floor, or has deleted the old one before this looks for it.
    """
    path = _path(incarnation, version)
    store.put_new(path, b"")
    folder = f"{incarnation_folder(incarnation)}/"
    others = [other for other in store.list(folder) if _is_floor(other) and other != path]
    for other in others or [path]:
        store.delete(other)
    return bool(others)


def end_mirrors(store: Store) -> int:
    """Make every incarnation unreadable, and delete all bounds of values that it has; return the
    number of files deleted. May be called again after any error.

    A mirror that commits meanwhile finds no floor afterwards, and begins a new incarnation.
    """
    deleted = 0
    for doomed in (_is_floor, _is_floor_or_has_bounds):
        for path in [path for path in store.list(f"{MIRRORS}/") if doomed(path)]:
            store.delete(path)
            deleted += 1
    return deleted


def delete_incarnations(store: Store, kept: str | None) -> None:
    """Delete the files of all incarnations but one; floors last, so that an interruption leaves
    nothing that no floor protects.
    """
    others = [
        path
        for path in store.list(f"{MIRRORS}/")
        if kept is None or not path.startswith(f"{incarnation_folder(kept)}/")
    ]
    for path in sorted(others, key=_is_floor):
        store.delete(path)


def _is_floor(path: str) -> bool:
    return _FLOOR.fullmatch(path) is not None


def _is_floor_or_has_bounds(path: str) -> bool:
    return _is_floor(path) or path.endswith(_WITH_BOUNDS)


def _path(incarnation: str, version: int) -> str:
    return f"{incarnation_folder(incarnation)}/floor-{version}"
