"""What a mirror needs of an Iceberg catalog, for one table.

It is a port, since the table's rules may not import the library that speaks with catalogs. Calls
block, also for long if a catalog doesn't answer; so whoever calls them does nothing else. Errors of
the library pass as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakesplice.model.moments import EpochMs
from lakesplice.planning.mirroring.columns import MirrorSchema, SchemaChange
from lakesplice.planning.mirroring.files import MirrorFile


@dataclass(frozen=True, slots=True)
class MirrorSnapshot:
    """A snapshot of an Iceberg table that shows a version of ours, committed at `committed_ms`."""

    id: int
    version: int
    committed_ms: EpochMs


@dataclass(frozen=True, slots=True)
class MirrorState:
    """What the catalog has. `columns` maps names to types, `mapped` are all names of the name
    mapping. `snapshots` are in their order, the last one being the present one. `files` maps the
    paths of the present snapshot's files to what a commit needs to remove them. `defect` says why
    it can't be continued, as when the present snapshot isn't ours. `handle` is the catalog's own.
    """

    incarnation: str
    columns: Mapping[str, str]
    mapped: frozenset[str]
    partitioned_by: tuple[str, ...]
    snapshots: tuple[MirrorSnapshot, ...]
    files: Mapping[str, Any]
    defect: str
    handle: Any


@dataclass(frozen=True, slots=True)
class MirrorCommit:
    """A new snapshot that shows `version`: with `removed` paths gone and `added` files there."""

    version: int
    committed_ms: EpochMs
    added: Sequence[MirrorFile]
    removed: Collection[str]


class MirrorCatalog(Protocol):
    """The catalog's side of one table's mirror. Each method makes at most one commit there."""

    def load(self) -> MirrorState | None:
        """Return the state; None if the catalog has no such table, or only an entry of an earlier
        mirror of this table, whose metadata is gone: `drop` removes that.

        `UsageError` if it has one that isn't a mirror of this table.
        """
        ...

    def create(self, incarnation: str, schema: MirrorSchema, commit: MirrorCommit) -> bool:
        """Create the table with a first snapshot; False if somebody else did just now."""
        ...

    def commit(
        self, state: MirrorState, schema: MirrorSchema, change: SchemaChange, commit: MirrorCommit
    ) -> bool:
        """Make the next snapshot, with the change of schema if there is one; False if the table has
        another snapshot by now, so that nothing was changed.
        """
        ...

    def expire(self, state: MirrorState, snapshots: Collection[int]) -> bool:
        """Forget snapshots by their ids, which never include the present one; as `commit`."""
        ...

    def needed(self, state: MirrorState) -> frozenset[str]:
        """Return the names of the metadata files that the table of a loaded state needs."""
        ...

    def drop(self) -> None:
        """Forget the table and delete no file; no error if there is none."""
        ...
