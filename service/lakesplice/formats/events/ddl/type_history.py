"""The types of a table's columns by position, from the source's DDL, and how each format writes
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from lakesplice.formats.events.ddl import DefinedColumn, SchemaHistory, TableVersion
from lakesplice.formats.events.ddl.added_columns import NUMBERS, as_fill, fill_of
from lakesplice.formats.events.values.column_types import PartialType, TypeHistory, TypeVersion
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.names import TableName
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.source_schema import NamePeriod
from lakesplice.model.types import ColumnType, Primitive

CASCADES = (
    "foreign-key-cascades: the table has a foreign key with CASCADE, SET NULL or SET DEFAULT,"
    " and the binlog lacks the changes that the server makes for it; change child rows by"
    " separate statements, or take a new snapshot after the parent's rows changed"
)
BYTES_AS_MEMBERS = (
    "enum-charset-binary: the connector changes values of ENUM and SET with CHARACTER SET binary;"
    " give the columns another character set (ALTER TABLE ... MODIFY), then take a new snapshot"
)
# How a column's values are written; None if they have no exact column type.
Written = Callable[[DefinedColumn], DeclaredType | None]


@dataclass(frozen=True, slots=True)
class _Fill:
    """What rows got in a column when it was added, as the type that it had then."""

    text: str
    type: ColumnType
    written: str


def type_history(
    history: SchemaHistory,
    table: TableName,
    written: Written,
    source: str = "the schema-change topic",
) -> TypeHistory | None:
    """Return the types of a table's columns by its source's DDL; None if no DDL of it was read.

    `source` is as in `TypeHistory`.
    """
    versions = history.table(table)
    if not versions:
        return None
    typed = _with_later_names(versions, _typed(versions, written))
    typed = _with_next_types(versions, typed)
    held = zip(typed, _tenures(versions), strict=True)
    return TypeHistory(
        tuple(replace(version, tenures=tenures) for version, tenures in held),
        history.ordered,
        source,
        tuple(_cautions(history, table, versions)),
    )


def _cautions(
    history: SchemaHistory, table: TableName, versions: Sequence[TableVersion]
) -> Iterator[str]:
    if history.cascades(table):
        yield CASCADES
    columns = (versions[-1].columns or {}).values()
    if any(column.type in ("ENUM", "SET") and column.charset == "binary" for column in columns):
        yield BYTES_AS_MEMBERS


def _typed(versions: Sequence[TableVersion], written: Written) -> list[TypeVersion]:
    found: list[TypeVersion] = []
    fills: dict[str, _Fill] = {}
    names: dict[str, tuple[str, ...]] = {}
    came: frozenset[str] = frozenset()
    for version in versions:
        if version.columns is None:
            fills, names, came = {}, {}, frozenset()
            gap = f"its columns are not known: {version.unknown}" if version.unknown else ""
            found.append(TypeVersion(version.position, gap=gap or "the table was dropped"))
            continue
        formerly = version.renamed
        names = {
            name: (formerly[name], *names.get(formerly[name], ()))
            if name in formerly
            else names.get(name, ())
            for name in version.columns.keys() - version.added
        }
        carried = {name for name in version.columns if formerly.get(name, name) in came}
        came = frozenset(version.added | carried)
        fills = {
            name: fills[formerly.get(name, name)]
            for name in version.columns
            if formerly.get(name, name) in fills and name not in version.added
        }
        typed, untyped = _columns(version.columns, written)
        for name in version.added & typed.keys():
            type_ = typed[name]
            fill = fill_of(version.columns[name], type_.type)
            if fill is not None:
                fills[name] = _Fill(fill, type_.type, type_.written)
        columns = {name: _filled(type_, fills.get(name)) for name, type_ in typed.items()}
        known = {name: earlier for name, earlier in names.items() if earlier}
        partly = {n: PartialType(c.type) for n, c in version.columns.items() if not c.digits_known}
        with_types = TypeVersion(version.position, columns, untyped, formerly=known, partly=partly)
        found.append(replace(with_types, came=came))
    return found


def _with_later_names(
    versions: Sequence[TableVersion], typed: Sequence[TypeVersion]
) -> list[TypeVersion]:
    found: list[TypeVersion] = []
    later: dict[str, tuple[str, ...]] = {}
    for at in reversed(range(len(typed))):
        found.append(replace(typed[at], later=dict(later)))
        version = versions[at]
        kept = (version.columns or {}).keys() - version.added
        steps = ((name, version.renamed.get(name)) for name in kept)
        later = {
            before or name: (*((name,) if before else ()), *later.get(name, ()))
            for name, before in steps
            if before or name in later
        }
    return found[::-1]


def _with_next_types(
    versions: Sequence[TableVersion], typed: Sequence[TypeVersion]
) -> list[TypeVersion]:
    """Give columns about which the DDL says too little the type that they have from a later
    position on.
    """
    found: list[TypeVersion] = []
    later_types: dict[str, str] = {}
    for version, types in zip(reversed(versions), reversed(typed), strict=True):
        partly = {
            name: replace(p, next=later_types.get(name, "")) for name, p in types.partly.items()
        }
        found.append(replace(types, partly=partly))
        now = {name: types.columns[name].written for name in types.columns}
        now |= {name: known.next for name, known in partly.items()}
        kept = now.keys() - version.added
        later_types = {version.renamed.get(name, name): now[name] for name in kept}
    return found[::-1]


def _columns(
    columns: Mapping[str, DefinedColumn], written: Written
) -> tuple[dict[str, DeclaredType], dict[str, str]]:
    typed, untyped = {}, {}
    for name, column in columns.items():
        type_ = written(column) if column.digits_known else None
        if not column.digits_known:
            untyped[name] = f"{column.type}, whose digits are not known"
        elif type_ is None:
            untyped[name] = f"{column.type} has no exact column without schemas"
        else:
            typed[name] = type_
    return typed, untyped


def _filled(type_: DeclaredType, fill: _Fill | None) -> DeclaredType:
    """Return the type with the value of existing rows, which a change of type may have kept."""
    if fill is None:
        return type_
    if fill.type == type_.type and fill.written == type_.written:
        return replace(type_, fill=fill.text)
    kept = {fill.type.kind, type_.type.kind} <= NUMBERS | {Primitive.STRING}
    return replace(type_, fill=as_fill(fill.text, type_.type)) if kept else type_


def _tenures(versions: Sequence[TableVersion]) -> list[dict[str, tuple[NamePeriod, ...]]]:
    """Return per version, for columns whose names other columns had too, or that got a name back,
    where they have these names.

    In versions whose columns aren't known, a name counts as staying with its column.
    """
    marks = count()
    bearer: dict[str, int] = {}
    since: dict[int, tuple[str, Position]] = {}
    ended: dict[int, list[NamePeriod]] = {}
    bearers: list[dict[str, int]] = []
    for at, version in enumerate(versions):
        if version.columns is None:
            bearers.append({})
            continue
        now = {}
        for name in version.columns:
            before = None if name in version.added else bearer.get(version.renamed.get(name, name))
            now[name] = next(marks) if before is None else before
        held = {(mark, name) for name, mark in now.items()}
        for mark, (name, first) in list(since.items()):
            if (mark, name) not in held:
                ended.setdefault(mark, []).append(NamePeriod(name, first, version.position))
                del since[mark]
        for name, mark in now.items():
            since.setdefault(mark, (name, version.position if at else BEFORE_ALL))
        bearers.append(now)
        bearer = now
    for mark, (name, first) in since.items():
        ended.setdefault(mark, []).append(NamePeriod(name, first))
    return [_shared(now, ended) for now in bearers]


def _shared(
    now: Mapping[str, int], tenures: Mapping[int, Sequence[NamePeriod]]
) -> dict[str, tuple[NamePeriod, ...]]:
    held = Counter(tenure.name for own in tenures.values() for tenure in own)
    had = Counter(name for own in tenures.values() for name in {tenure.name for tenure in own})
    found = {
        name: tuple(
            replace(tenure, alone=had[tenure.name] == 1)
            for tenure in tenures[mark]
            if held[tenure.name] > 1
        )
        for name, mark in now.items()
    }
    return {name: own for name, own in found.items() if own}
