"""Intents of shadows: chunks of the source's rows enter one, and it becomes the table.

As the others in `table/protocol/intents.py`, they say in values what they rest on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.model.manifest import DeltaRef, Manifest, RunRef
from lakesplice.model.position import Position
from lakesplice.table.protocol.new_files import NewFile


@dataclass(frozen=True, slots=True)
class Backfill:
    """Rows that were read from the source of `topic`, as an ingest that moves no offsets.

    `chunks` are the numbers of the chunks that these rows complete, `highest` is the highest
    position of the rows, `read_rows` how many were read. `fence` is the one that the rows were
    judged by. The rest is as for `Ingest`.
    """

    generation: int
    planned_on: int
    topic: str
    chunks: frozenset[int]
    highest: Position
    read_rows: int
    fence: Position
    schema_version: int
    addressed_groups: frozenset[int] = frozenset()
    files: tuple[NewFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    read: frozenset[str] | None = None
    replaced: Mapping[str, NewFile] = field(default_factory=dict)

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Swap:
    """The content of a shadow becomes the table's: `manifest` is the shadow's newest one.

    `stats` maps each of its base files to Delta statistics. `planned_on` is the table's newest
    version, None if the shadow is to become a new table, which then has `log_retention_hours`.
    """

    generation: int
    planned_on: int | None
    manifest: Manifest
    stats: Mapping[str, str | None]
    log_retention_hours: int = 168
