"""Intents of an erasure: after them no file of the table has the rows' values, and no older version
exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.model.arrays import KeyHash
from lakesplice.model.manifest import DeadLetterRef, DeltaRef, ErasedRef, Retention, RunRef
from lakesplice.table.protocol.new_files import NewFile


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The replacements of files that had data of erased rows, by path; None if nothing of a file
    remains. The next version of a delta waits for the same groups.
    """

    runs: Mapping[str, RunRef | None] = field(default_factory=dict)
    deltas: Mapping[str, DeltaRef | None] = field(default_factory=dict)
    letters: Mapping[str, DeadLetterRef | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Erase:
    """Base files, rewritten without the rows of some keys, and all other rewritten files that had
    data of these rows.

    `outputs` have the remaining rows of `inputs` in new file groups, `run` their entries in the
    index; None if no row remains. `keys` are the hashes of the keys; the manifest doesn't keep
    them. `erased` is the record of erased keys after this commit, `read` the one before; both are
    None in a table that no topic feeds. `planned_on` and `schema_version` as in `Splice`.
    """

    generation: int
    inputs: tuple[str, ...]
    outputs: tuple[NewFile, ...]
    run: RunRef | None
    rewritten: Rewritten
    keys: frozenset[KeyHash]
    erased: ErasedRef | None
    read: ErasedRef | None
    planned_on: int
    schema_version: int
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.inputs)


@dataclass(frozen=True, slots=True)
class EndVersions:
    """All versions before this commit end: their files and their log entries are deleted.

    `read` is the retention on which it was planned, in which nothing was pinned. `vacuumed` as in
    `Expire`. `counts` are those of the erasure, since the history keeps only this commit.
    """

    generation: int
    read: Retention
    vacuumed: int
    counts: Mapping[str, int] = field(default_factory=dict)
