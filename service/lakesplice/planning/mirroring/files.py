"""Files of an Iceberg mirror: which ones enter and leave it, and what their entries say.

Bounds and numbers of nulls are those of the log (`formats/parquet/stats.py`), so nothing is read
from the files themselves. Bounds that another writer gave an adopted file are taken over only where
every writer gives them exactly: texts may be cut, moments rounded down, and decimals rounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import TypeAlias

from lakesplice.errors import CorruptFileError
from lakesplice.model.address import BaseFile
from lakesplice.model.schema import TableSchema
from lakesplice.model.types import DECIMAL_PRECISION_MAX, WHOLE_NUMBERS, ColumnType, Primitive

Value: TypeAlias = bool | int | Decimal | str

_EXACT = frozenset((*WHOLE_NUMBERS, Primitive.DATE))
_BOUNDED = _EXACT | {Primitive.DECIMAL, Primitive.STRING, Primitive.TIMESTAMP}
# Python's own context has fewer digits than a column may have.
_ALL_DIGITS = Context(prec=DECIMAL_PRECISION_MAX)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MirrorFile:
    """A base file as a mirror lists it. `path` is relative to the table. `partition` has a value
    for each partition column; `lower`, `upper` and `nulls` are by column.
    """

    path: str
    bytes: int
    rows: int
    partition: tuple[Value | None, ...]
    lower: Mapping[str, Value]
    upper: Mapping[str, Value]
    nulls: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The files that enter a mirror, and the paths of those that leave it."""

    added: tuple[BaseFile, ...]
    removed: frozenset[str]

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.added or self.removed)


def file_changes(present: Iterable[str], wanted: Mapping[str, BaseFile]) -> FileChanges:
    """Return what has to change so that a mirror with some paths has the wanted files."""
    known = frozenset(present)
    added = tuple(file for path, file in wanted.items() if path not in known)
    return FileChanges(added, known - wanted.keys())


def mirror_file(file: BaseFile, stats: str | None, schema: TableSchema) -> MirrorFile:
    """Return the entry of a file; `stats` is what the log says of it.

    `CorruptFileError` if the log's statistics or partition can't be read.
    """
    types = {column.name: column.type for column in schema.columns if not column.hidden}
    try:
        found = json.loads(stats or "{}", parse_float=Decimal)
        kinds = _EXACT if schema.adopted else _BOUNDED
        bounded = {name: type_ for name, type_ in types.items() if type_.kind in kinds}
        nulls = found.get("nullCount") or {}
        return MirrorFile(
            path=file.path,
            bytes=file.bytes,
            rows=file.rows,
            partition=tuple(
                None if text is None else _of_text(text, types[name])
                for name, text in zip(schema.partitioned_by, file.partition, strict=True)
            ),
            lower=_bounds(found.get("minValues") or {}, bounded),
            upper=_bounds(found.get("maxValues") or {}, bounded),
            nulls={name: int(nulls[name]) for name in types if name in nulls},
        )
    except (ValueError, TypeError, AttributeError, ArithmeticError, KeyError) as error:
        raise CorruptFileError(
            "the log's statistics of a base file can't be read; restore the log", path=file.path
        ) from error


def _bounds(values: Mapping[str, object], types: Mapping[str, ColumnType]) -> dict[str, Value]:
    return {
        name: _of_text(str(values[name]), type_)
        for name, type_ in types.items()
        if values.get(name) is not None
    }


def _of_text(text: str, type_: ColumnType) -> Value:
    """Return a value that the log writes as text or as a number, in Iceberg's form."""
    kind = type_.kind
    if kind in WHOLE_NUMBERS:
        return int(text)
    if kind is Primitive.DECIMAL:
        return Decimal(text).quantize(Decimal(1).scaleb(-type_.scale), context=_ALL_DIGITS)
    if kind is Primitive.DATE:
        return date.fromisoformat(text).toordinal() - _FIRST_DAY
    if kind is Primitive.TIMESTAMP:
        return _microseconds(datetime.fromisoformat(text))
    if kind is Primitive.BOOLEAN:
        return {"true": True, "false": False}[text.lower()]
    if kind is Primitive.STRING:
        return text
    raise ValueError(f"no form of {type_.name} is known in the log")


def _microseconds(moment: datetime) -> int:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    past = known - _EPOCH
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds
