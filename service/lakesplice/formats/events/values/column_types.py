"""The types of a table's columns at a position, for events that don't contain them.

The positions of a source's schema changes are known (`ddl/`), so a change's position shows which
types are in force. If it doesn't (positions start over after a failover, or events have none), only
types that are the same in all versions are used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.source_schema import NamePeriod


@dataclass(frozen=True, slots=True)
class PositionRange:
    """The positions from `first` on and before `until`; None means no end."""

    first: Position = BEFORE_ALL
    until: Position | None = None

    @property
    def is_everything(self) -> bool:
        """Whether it contains every position."""
        return self.first == BEFORE_ALL and self.until is None


EVERYWHERE = PositionRange()


@dataclass(frozen=True, slots=True)
class PartialType:
    """The DDL of a column has the kind of its type (`DECIMAL`), but not its digits. `next` is
    its later type by the DDL, as a declaration spells it; empty if there is none.
    """

    kind: str
    next: str = ""


@dataclass(frozen=True)
class TypeVersion:
    """A table's columns from a position on: their types, or the reason why a type is unknown.
    `partly` has columns for which the DDL has only a part of the type.

    For renamed columns `formerly` has their earlier names, the latest first, and `later` their
    later names, the next first. `came` has columns that a reported statement added. If the table's
    columns aren't known, `gap` says why.
    """

    position: Position
    columns: Mapping[str, DeclaredType] = field(default_factory=dict)
    untyped: Mapping[str, str] = field(default_factory=dict)
    gap: str = ""
    formerly: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    later: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tenures: Mapping[str, tuple[NamePeriod, ...]] = field(default_factory=dict)
    partly: Mapping[str, PartialType] = field(default_factory=dict)
    came: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TypeHistory:
    """A table's versions; if `ordered`, they ascend by position, and a position shows the version.

    `source` says for operators where they come from. `cautions` are changes of the table that the
    connector doesn't send or alters, each as "name: what it does and what to do".
    """

    versions: tuple[TypeVersion, ...]
    ordered: bool = True
    source: str = "the schema-change topic"
    cautions: tuple[str, ...] = ()

    def at(self, position: Position | None) -> tuple[TypeVersion, PositionRange]:
        """Return the version at a position, and the positions where it is in force."""
        if not self.versions or not self.ordered or position is None:
            return self.agreed, EVERYWHERE
        starts = self._starts
        at = bisect_right(starts, position)
        if not at:
            gap = f"{self.source} begins at {starts[0]}, the change is at {position}"
            return TypeVersion(BEFORE_ALL, gap=gap), PositionRange(BEFORE_ALL, starts[0])
        until = starts[at] if at < len(starts) else None
        return self.versions[at - 1], PositionRange(starts[at - 1], until)

    @cached_property
    def agreed(self) -> TypeVersion:
        """Return what is true in every version that has the column: all that is known without a
        position.
        """
        columns: dict[str, DeclaredType] = {}
        untyped: dict[str, str] = {}
        for version in self.versions:
            untyped |= version.untyped
            for name, type_ in version.columns.items():
                known = columns.setdefault(name, type_)
                if (known.name, known.encoding) != (type_.name, type_.encoding):
                    untyped[name] = (
                        f"it was {known.name} and {type_.name}, and the change's position doesn't"
                        " show which"
                    )
        gap = next((version.gap for version in self.versions if version.gap), "")
        agreed = {} if gap else {n: type_ for n, type_ in columns.items() if n not in untyped}
        return TypeVersion(BEFORE_ALL, agreed, untyped, gap)

    def placeless(self) -> TypeHistory:
        """Return the same history for changes whose positions aren't comparable with it."""
        return replace(self, ordered=False)

    @cached_property
    def handed_on(self) -> frozenset[str]:
        """Names that passed from one column to another without a version between."""
        ends = {(t.name, t.until) for t in self._tenures if not t.alone}
        return frozenset(t.name for t in self._tenures if (t.name, t.first) in ends)

    @cached_property
    def turns(self) -> tuple[Position, ...]:
        """The positions, ascending, at which names changed columns or became free."""
        places = {position for t in self._tenures for position in (t.first, t.until)}
        return tuple(sorted(position for position in places if position not in (None, BEFORE_ALL)))

    @cached_property
    def _tenures(self) -> frozenset[NamePeriod]:
        versions = (version.tenures.values() for version in self.versions)
        return frozenset(tenure for held in versions for own in held for tenure in own)

    @cached_property
    def _starts(self) -> list[Position]:
        return [version.position for version in self.versions]
