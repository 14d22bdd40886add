"""Intents of upkeep: they rewrite files without changing rows, or announce that files will be
deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.model.manifest import DeltaRef, Retention, RunRef
from lakesplice.model.position import Position
from lakesplice.table.protocol.new_files import ChangeImages, NewFile


@dataclass(frozen=True, slots=True)
class Splice:
    """Base files, rewritten with the changes that waited for them.

    `replaced` maps the path of a file to its next version, with the same segments; several files
    may have one next version, with the segments of each in the order of `replaced`. `consumed` maps
    the path of a delta to the file groups whose changes were applied. `planned_on` is the version
    that was read before anything was written; 0 counts as older than any. `schema_version` is that
    of the new files' layout; None if no column can have changed since.
    `images` are of all rows that the commit changes or adds; None if none were made, which only a
    table without a change feed permits.
    """

    generation: int
    replaced: Mapping[str, NewFile]
    consumed: Mapping[str, frozenset[int]]
    counts: Mapping[str, int] = field(default_factory=dict)
    planned_on: int = 0
    schema_version: int | None = None
    images: tuple[ChangeImages, ...] | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)

    @property
    def files_written(self) -> int:
        """How many files replace them: fewer, if several became one."""
        return len({new.base.path for new in self.replaced.values()})


@dataclass(frozen=True, slots=True)
class FileMerge:
    """Several base files become one: `output` has the segments of `inputs` in their order, so each
    row keeps its address. `planned_on` and `schema_version` as in `Splice`.
    """

    generation: int
    inputs: tuple[str, ...]
    output: NewFile
    counts: Mapping[str, int] = field(default_factory=dict)
    planned_on: int = 0
    schema_version: int | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.inputs)


@dataclass(frozen=True, slots=True)
class Purge:
    """Base files, rewritten without rows that were deleted for good.

    `outputs` have the remaining rows in new file groups, `run` their entries in the index; None if
    no row remains. `floors` has, for each topic whose rows were removed, a position at or above all
    of these. `planned_on` and `schema_version` as in `Splice`.
    """

    generation: int
    inputs: tuple[str, ...]
    outputs: tuple[NewFile, ...]
    run: RunRef | None
    floors: Mapping[str, Position]
    planned_on: int
    counts: Mapping[str, int] = field(default_factory=dict)
    schema_version: int | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.inputs)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Base files, rewritten with their rows in another order, in new file groups.

    `outputs` have the rows of `inputs`, `run` their entries in the index; None if the index has
    none of them. Changes that wait for the rows move along:
    `taken` has, for each delta with such changes, their number per file group of `inputs`, and
    `carried` the delta that has them at the rows' new addresses. `planned_on` and `schema_version`
    as in `Splice`. `by` names the columns of the order; a table that is fed by hand keeps them.
    `reason` is for the history.
    """

    generation: int
    inputs: tuple[str, ...]
    outputs: tuple[NewFile, ...]
    run: RunRef | None
    taken: Mapping[str, Mapping[int, int]]
    carried: Mapping[str, DeltaRef]
    planned_on: int
    counts: Mapping[str, int] = field(default_factory=dict)
    schema_version: int | None = None
    by: tuple[str, ...] = ()
    reason: str = ""

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.inputs)


@dataclass(frozen=True, slots=True)
class IndexMerge:
    """Adjacent index runs, oldest first, become one; `planned_on` as in `Splice`."""

    generation: int
    inputs: tuple[str, ...]
    output: RunRef
    planned_on: int = 0


@dataclass(frozen=True, slots=True)
class Expire:
    """Announces that files of versions below `retained_from` will be deleted, before the first one
    is.

    `read` is the retention on which it was planned. Files that only versions below `vacuumed` name
    are deleted. The pins named in `ended` end with it.
    """

    generation: int
    read: Retention
    retained_from: int
    vacuumed: int
    counts: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sweep:
    """Announces that files which no version names will be deleted; slow writers must rewrite their
    files.

    Commits whose writers began on a version below `writers_from` are refused from now on. None
    stands for the version of this commit, so for all present writers.
    """

    generation: int
    writers_from: int | None = None
