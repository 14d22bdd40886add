"""Intents of an erasure: nothing that a version names has the rows' values any more, and no older
version is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.model.manifest import (
    DeadLetterRef,
    DeltaRef,
    ErasedRef,
    Retention,
    RunRef,
)
from lakesplice.model.progress.erased_keys import SaltedHash
from lakesplice.table.protocol.new_files import NewFile

KeyHash = SaltedHash
"""The two halves of a key's hash, as the row index has it."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What takes the place of files that had something of erased rows, by path; None if nothing of
    a file remains. A delta's next version waits for the same groups.
    """

    runs: Mapping[str, RunRef | None] = field(default_factory=dict)
    deltas: Mapping[str, DeltaRef | None] = field(default_factory=dict)
    letters: Mapping[str, DeadLetterRef | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Erase:
    """Base files, rewritten without the rows of some keys, and all other files of the table that
    had something of them.

    `outputs` have the remaining rows of `inputs` in new file groups, `run` their entries in the
    index; None if no row remains. `keys` are the hashes of the keys, of which the manifest keeps
    nothing either. `erased` is what is remembered of them, `read` what was before; both are None in
    a table that no topic feeds. `planned_on` and `schema_version` as in `Splice`.
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
    """All versions before this commit end: their files are deleted, and their entries in the log.

    `read` is the retention that it was planned on, in which nothing was pinned. `vacuumed` as in
    `Expire`. `counts` say what was erased before: the history has this commit alone of it.
    """

    generation: int
    read: Retention
    vacuumed: int
    counts: Mapping[str, int] = field(default_factory=dict)
