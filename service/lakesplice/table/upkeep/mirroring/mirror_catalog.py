"""What a mirror needs of an Iceberg catalog, for one table.

It is a port, since `table` may not import pyiceberg. Calls block, for minutes if a catalog doesn't
answer, so they are made in a thread that does nothing else. Errors of pyiceberg aren't changed.
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
    """What the catalog has of a mirror.

    incarnation       which of the table's mirrors it is
    columns           the types of its columns, by name
    mapped            all names in its name mapping
    partitioned_by    its partition columns
    snapshots         the snapshots that we made, oldest first; the last one is the present one
    files             by the path of each file in the present snapshot, what a commit needs to
                      remove it
    defect            why it can't be continued, such as a snapshot that another writer made; else
                      empty
    handle            pyiceberg's own object
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
        """Create the table with a first snapshot; False if another process created it first."""
        ...

    def commit(
        self, state: MirrorState, schema: MirrorSchema, change: SchemaChange, commit: MirrorCommit
    ) -> bool:
        """Make the next snapshot, with the change of schema if there is one; False if the table has
        another snapshot by now, so that nothing was changed.
        """
        ...

    def expire(self, state: MirrorState, snapshots: Collection[int]) -> bool:
        """Forget snapshots by their ids, never the present one; False as in `commit`."""
        ...

    def needed(self, state: MirrorState) -> frozenset[str]:
        """Return the names of the metadata files that the table of a loaded state needs."""
        ...

    def drop(self) -> None:
        """Forget the table and delete no file; no error if there is none."""
        ...
