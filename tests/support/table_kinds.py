"""Random tables of every kind that a lake can have, and faults in their rows."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from lakesplice.model.choices import NotInserts
from lakesplice.model.names import APPENDED
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.masks import masks_of
from lakesplice.planning.shape.metadata_columns import MetadataContent
from lakesplice.planning.shape.shaping import Shape
from tests.support.mirrored import MirroredColumn, MirroredTable, Row, decimal_column
from tests.support.odd_columns import ODD, ODD_KEYS, of_text, or_null

Random = random.Random
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # the driver gives a DATETIME without a zone
_DAYS = {"type": "int32", "name": "io.debezium.time.Date", "version": 1}
_MICROS = {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1}
_ENUM = {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "a,b,ü"}}
_TEXTS = (None, "", "a", "A", " a", "ä😀\"',\n", "N", "1:a")


def _days(value: dt.date) -> int:
    return (value - _EPOCH.date()).days


def _micros(value: dt.datetime) -> int:
    return (value - _EPOCH) // dt.timedelta(microseconds=1)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _moment(chance: Random) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=chance.randint(-(10**15), 10**15))


def _document(chance: Random) -> str:
    return json.dumps({"a": chance.randint(0, 9), "b": [chance.choice(("x", None))]})


VALUES = (
    MirroredColumn(
        "word", "varchar(40) collate utf8mb4_bin", {"type": "string"}, lambda c: c.choice(_TEXTS)
    ),
    MirroredColumn(
        "other", "varchar(40) collate utf8mb4_bin", {"type": "string"}, lambda c: c.choice(_TEXTS)
    ),
    decimal_column("price", 8, 2, lambda c: Decimal(c.randint(-999, 999)).scaleb(-2)),
    decimal_column("share", 20, 10, lambda c: Decimal(c.choice((0, 1, -10, 10**12))).scaleb(-10)),
    MirroredColumn("stock", "int", {"type": "int32"}, lambda c: c.randint(-9, 9)),
    MirroredColumn("ratio", "double", {"type": "double"}, lambda c: c.choice((0.1, 0.3, 1e300))),
    MirroredColumn("half", "float", {"type": "float"}, lambda c: c.randint(-9, 9) / 2),
    MirroredColumn(
        "doc", "json", {"type": "string", "name": "io.debezium.data.Json"}, _document
    ),
    MirroredColumn(
        "day", "date", _DAYS, lambda c: dt.date(2024, 2, 28) + dt.timedelta(c.randint(0, 3)), _days
    ),
    MirroredColumn("moment", "datetime(6)", _MICROS, _moment, _micros),
    MirroredColumn("raw", "varbinary(9)", {"type": "bytes"}, lambda c: c.randbytes(2), _base64),
    MirroredColumn("size", "enum('b','ü','a')", _ENUM, lambda c: c.choice("abü")),
    *(column for column, _ in ODD.values()),
    decimal_column("grand", 20, 0, lambda c: Decimal(c.choice((0, 2**64 - 1)))),
)  # fmt: skip
_GRAND = replace(VALUES[-1], ddl="bigint unsigned")
_ID = MirroredColumn("id", "bigint", {"type": "int64"})
_KEYS: tuple[tuple[tuple[MirroredColumn, ...], Callable[[int], Row]], ...] = (
    ((_ID,), lambda n: (n - 10,)),
    ((replace(_GRAND, name="id"),), lambda n: (Decimal(2**63 + n),)),
    (
        (replace(VALUES[11], name="region"), _ID), lambda n: ("abü"[n % 3], n // 3)
    ),
    (
        (replace(VALUES[0], name="code", ddl="varchar(20) collate utf8mb4_general_ci"),),
        lambda n: (f"Ä'{n}",),
    ),
    ((replace(VALUES[10], name="token"), _ID), lambda n: (bytes((n % 256, 0)), n // 256)),
    ((replace(VALUES[8], name="of"), _ID), lambda n: (dt.date(1969, 12, 1) + dt.timedelta(n), 1)),
    ((replace(VALUES[3], name="number"),), lambda n: (Decimal(n).scaleb(-10),)),
    *(
        ((replace(column, name="odd"), *[_ID] * (len(key_at(0)) - 1)), key_at)
        for column, key_at in ODD_KEYS
    ),
)  # fmt: skip


@dataclass(frozen=True)
class TableKind:
    """A table and how the lake has it. `compared` are the columns that a comparison can look at
    beside the key, `refused` is part of the reason if it can't look at any, empty if it can.
    """

    table: MirroredTable
    key_at: Callable[[int], Row]
    compared: frozenset[str]
    refused: str = ""

    def row(self, number: int, chance: Random) -> Row:
        """The row with the key of a number, and values at random."""
        columns = self.table.columns[len(self.table.key) :]
        values = (None if chance.random() < 0.1 else column.draw(chance) for column in columns)
        return (*self.key_at(number), *values)


def random_kind(chance: Random, *, shards: bool) -> TableKind:
    """A kind of table; with `shards` one of those that several topics feed."""
    key, key_at = chance.choice(_KEYS)
    values = chance.sample((*VALUES[:-1], _GRAND), chance.randint(4, 9))
    key_names = tuple(column.name for column in key)
    excluded, masked, *_ = chance.sample([column.name for column in values], 4)
    shape = Shape(exclude=(excluded,)) if chance.random() < 0.5 else Shape()
    compared = {column.name for column in values} - set(shape.exclude)
    if chance.random() < 0.5:
        how = chance.choice(("redact", "hash"))
        shape = replace(shape, masks=masks_of({masked: how}), secret="pepper")
        compared.discard(masked)
    if chance.random() < 0.5:
        seen = parse(f"cast({key_names[-1]}, string)")
        if key_names[-1] in ("id", "code", "number"):
            shape = replace(shape, computed=(("seen", seen),))
    by = compared & {"word", "stock", "day", "size"}
    policy = SchemaPolicy(
        partition_by=(chance.choice(sorted(by)),) if by else (),
        rename_column=chance.choice((Behaviour.EVOLVE, Behaviour.LENIENT)),
        drop_column=chance.choice((Behaviour.EVOLVE, Behaviour.LENIENT)),
    )
    if shards:
        named = (("database_name", MetadataContent.DATABASE_NAME),)
        shape = replace(shape, metadata=named, key=("database_name",))
    elif chance.random() < 0.5:
        shape = replace(shape, metadata=(("op_ts", MetadataContent.OP_TS),))
    columns = (*key, *values)
    table = MirroredTable(
        columns,
        mark=lambda n: (*key_at(100 + n), *(None for _ in values)),
        key=key_names,
        shape=shape,
        policy=policy,
        not_inserts=NotInserts.PARK if chance.random() < 0.2 else None,
    )
    return TableKind(table, key_at, frozenset(compared))


@dataclass(frozen=True)
class Alteration:
    """An ALTER, the table after it, and the former name of a column that has another now."""

    statement: str
    kind: TableKind
    formerly: Mapping[str, str]


def random_alterations(kind: TableKind, chance: Random, count: int) -> list[Alteration]:
    """ALTERs of a table, one after the other."""
    made: list[Alteration] = []
    for _ in range(count):
        made.append(_alteration(made[-1].kind if made else kind, chance))
    return made


def _alteration(kind: TableKind, chance: Random) -> Alteration:
    """An ALTER that renames, adds or drops a column. Columns that are masked, left out or in the
    table's partitions stay, since without them it parks.
    """
    table, mark = kind.table, str(chance.randint(0, 9_999))
    columns, names = list(table.columns), set(table.names[len(table.key) :])
    movable = sorted((kind.compared & names) - set(table.policy.partition_by))
    how = chance.choice(("add", "drop", "rename")) if len(movable) > 1 else "add"
    if how == "add":
        of = chance.choice(VALUES)
        added = replace(of, name=f"{of.name.partition(_SINCE)[0]}{_SINCE}{mark}")
        if of.name in _DEFAULTS and chance.random() < 0.7:
            sql, value = _DEFAULTS[of.name]
            field = {**of.field, "default": value}
            added = replace(added, ddl=f"{of.ddl} default {sql}", field=field)
        return _altered(kind, f"add column {added.name} {added.ddl}", [*columns, added], {})
    name = chance.choice(movable)
    at = next(n for n, column in enumerate(columns) if column.name == name)
    if how == "drop":
        del columns[at]
        return _altered(kind, f"drop column {name}", columns, {})
    now = f"{name.partition(_SINCE)[0]}{_SINCE}{mark}"
    columns[at] = replace(columns[at], name=now)
    return _altered(kind, f"rename column {name} to {now}", columns, {now: name})


_SINCE = "_since_"
_DEFAULTS = {"stock": ("7", 7), "word": ("'none'", "none")}


def _altered(
    kind: TableKind, change: str, columns: list[MirroredColumn], formerly: Mapping[str, str]
) -> Alteration:
    count, names = len(columns) - len(kind.table.key), {column.name for column in columns}
    table = replace(
        kind.table,
        columns=tuple(columns),
        mark=lambda n: (*kind.key_at(100 + n), *[None] * count),
    )
    new = names - set(kind.table.names)
    compared = (kind.compared & names) | new
    altered = replace(kind, table=table, compared=frozenset(compared))
    return Alteration(f"alter table items {change}", altered, formerly)


def appended(kind: TableKind) -> TableKind:
    """The same as a table without a key in the lake."""
    table = replace(kind.table, lake_key=APPENDED, not_inserts=NotInserts.DEAD_LETTER)
    return replace(kind, table=table, refused="mode: append")


def with_masked_key(kind: TableKind) -> TableKind:
    """The same with a key that is masked."""
    assert kind.table.shape is not None
    shape = replace(
        kind.table.shape, masks=masks_of({kind.table.key[0]: "hash"}), secret="pepper", computed=()
    )
    return replace(kind, table=replace(kind.table, shape=shape), refused="is masked")


def damaged(kind: TableKind, row: Row, chance: Random) -> tuple[Row, set[str]]:
    """The row with something wrong, and in which columns."""
    values = dict(zip(kind.table.names, row, strict=True))
    wrong: dict[str, Any] = {}
    if {"word", "other"} <= values.keys() and values["word"] != values["other"]:
        wrong = {"word": values["other"], "other": values["word"]}
    if not wrong or chance.random() < 0.7:
        name = chance.choice(kind.table.names[len(kind.table.key) :])
        wrong = {name: chance.choice(_LIES[name.partition(_SINCE)[0]](values[name]))}
    return tuple({**values, **wrong}.values()), set(wrong)


_LIES: Mapping[str, Callable[[Any], list[Any]]] = {
    "word": of_text,
    "other": of_text,
    "price": lambda v: or_null(v, Decimal(0), v and v + Decimal("0.01"), Decimal(-9)),
    "share": lambda v: or_null(v, Decimal(0), (v or 0) + Decimal("0.0000000001")),
    "stock": lambda v: or_null(v, 0, (v or 0) + 1),
    "ratio": lambda v: or_null(v, 0.0, math.nextafter(v or 0.0, 1.0)),
    "half": lambda v: or_null(v, 0.0, (v or 0.0) + 0.5),
    "doc": lambda v: or_null(
        v, "{}", v and json.dumps(dict(reversed(json.loads(v).items()))), v and v.replace(" ", "")
    ),
    "day": lambda v: or_null(v, dt.date(1970, 1, 1), v and v + dt.timedelta(1)),
    "moment": lambda v: or_null(v, _EPOCH, v and v + dt.timedelta(microseconds=1)),
    "raw": lambda v: or_null(v, b"", v and v + b"\0", v and v[:1]),
    "size": lambda v: or_null(v, "a", "b" if v != "b" else "a"),
    "grand": lambda v: or_null(v, Decimal(0), Decimal(1)),
    **{name: lies for name, (_, lies) in ODD.items()},
}
