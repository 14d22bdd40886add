"""Checksums of rows: values and texts round-trip, and different rows have different texts."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zlib import crc32

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import assume, given

from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.checksums import BUCKETS, BucketSums, Compared, row_texts
from lakesplice.planning.source_rows.columns import (
    DatabaseColumn,
    ReadColumn,
    TextForm,
    read_column,
)
from lakesplice.planning.source_rows.key_lookups import keys_sql
from lakesplice.planning.source_rows.key_ranges import KeyColumn, key_columns
from lakesplice.planning.source_rows.values import text_type, values_of

_UTC = dt.UTC
_DAY, _EPOCH = dt.date(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=_UTC)
_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
_octets = st.binary(max_size=9) | st.text("\0\1\x20", max_size=7).map(str.encode)
_texts = st.text(st.sampled_from('N0,:",\n é😀aA '), max_size=5)


def _read(name: str, ddl: str, to: str, source_type: str = "") -> ReadColumn:
    charset = "utf8mb4" if to == "string" and "decimal" not in ddl else None
    found = read_column(DatabaseColumn(name, ddl, charset), ColumnType.parse(to), source_type)
    assert isinstance(found, ReadColumn)
    return found


_NANO = "int64:io.debezium.time.NanoTime"
_MILLI = "int32:io.debezium.time.Time"
# Per type values as they are in the lake, and the text that the database gives of each.
_TYPES: list[tuple[ReadColumn, st.SearchStrategy[Any], Callable[[Any], str]]] = [
    (_read("c", "int", "integer"), st.integers(-(2**31), 2**31 - 1), str),
    (_read("c", "tinyint", "byte"), st.integers(-128, 127), str),
    (_read("c", "bigint unsigned", "decimal(20,0)"), st.integers(0, 2**64 - 1).map(Decimal), str),
    (
        _read("c", "decimal(12,2)", "decimal(12,2)"),
        st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-2)),
        lambda v: f"{v:.2f}",
    ),
    (_read("c", "decimal(65,30)", "string"), st.just(f"-0.{1:030}"), str),
    (
        _read("c", "double", "double"),
        st.floats(allow_nan=False, allow_infinity=False),
        lambda v: struct.pack("<d", v).hex().upper(),
    ),
    (
        _read("c", "float", "float"),
        st.floats(width=32, allow_nan=False, allow_infinity=False),
        lambda v: struct.pack("<d", v).hex().upper(),
    ),
    (
        _read("c", "date", "date"),
        st.dates(dt.date(1, 1, 1)),
        lambda v: str((v - _DAY).days),
    ),
    (
        _read("c", "datetime(6)", "timestamp"),
        st.datetimes(dt.datetime(1, 1, 1)).map(lambda v: v.replace(tzinfo=_UTC)),  # noqa: DTZ001
        lambda v: str((v - _EPOCH) // dt.timedelta(microseconds=1)),
    ),
    (_read("c", "time(6)", "long"), st.integers(-(10**12), 10**12), str),
    (
        _read("c", "time(6)", "long", _NANO),
        st.integers(-(10**12), 10**12).map(lambda n: n * 1000),
        lambda v: str(v // 1000),
    ),
    (
        _read("c", "time(3)", "integer", _MILLI),
        st.integers(-(10**9), 10**9),
        lambda v: str(v * 1000),
    ),
    (_read("c", "bit(1)", "boolean"), st.booleans(), lambda v: str(int(v))),
    (
        _read("c", "bit(12)", "binary"),
        st.integers(0, 4095).map(lambda n: n.to_bytes(2, "little")),
        lambda v: str(int.from_bytes(v, "little")),
    ),
    (_read("c", "year", "integer"), st.integers(1901, 2155), str),
    (_read("c", "text", "string"), _texts, str),
    (_read("c", "enum('a','b')", "string"), st.sampled_from(["a", "b", ""]), str),
    (_read("c", "blob", "binary"), st.binary(max_size=9), lambda v: v.hex().upper()),
    (
        _read("c", "geometry", "binary"),
        st.just(_POINT),
        lambda v: (bytes(4) + v).hex().upper(),
    ),
    (
        _read("c", "geometry", "binary"),
        st.integers(1, 2**32 - 1).map(
            lambda n: b"\1" + bytes.fromhex("01000020") + n.to_bytes(4, "little") + _POINT[5:]
        ),
        lambda v: (v[5:9] + _POINT).hex().upper(),
    ),
]


# What a damaged or wrongly written column may hold, beside what a database has.
_ANY: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.binary(): st.builds(bytes.__add__, st.sampled_from([b"", _POINT[:4], _POINT[:3]]), _octets),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-2000, 2000),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): _texts,
}


@given(st.sampled_from(_TYPES), st.data())
def test_values_that_differ_have_texts_that_differ(
    of: tuple[ReadColumn, st.SearchStrategy[Any], object], data: st.DataObject
) -> None:
    column, its_own, _ = of
    arrow = column.type.arrow
    drawn = data.draw(st.lists(its_own | _ANY.get(arrow, st.none()), min_size=2, max_size=12))
    values = pa.array(drawn, arrow)
    texts = canonical_texts(column, values).to_pylist()
    known: dict[object, object] = {}
    for value, text in zip(map(repr, values.to_pylist()), texts, strict=True):
        assert known.setdefault(text, value) == value


@given(st.sampled_from(_TYPES).flatmap(lambda t: st.tuples(st.just(t), st.lists(st.none() | t[1]))))
def test_a_value_s_text_is_the_database_s_and_is_read_as_the_value(
    drawn: tuple[tuple[ReadColumn, object, Callable[[Any], str]], list[Any]],
) -> None:
    (column, _, text), values = drawn
    array = pa.array(values, column.type.arrow)
    texts = canonical_texts(column, array)
    assert texts.to_pylist() == [None if value is None else text(value) for value in values]
    if len(values):
        raw = texts.cast(pa.string()).cast(text_type(column))
        assert values_of(column, raw).values.equals(array)


_COLUMNS = (
    _read("k", "int", "integer"),
    _read("a", "text", "string"),
    _read("b", "text", "string"),
    _read("n", "int", "integer"),
    _read("o", "blob", "binary"),
)
_ROW = st.tuples(
    st.integers(-2, 12),
    st.none() | _texts,
    st.none() | _texts,
    st.none() | st.integers(-2, 12),
    st.none() | st.binary(max_size=3),
)
Row = tuple[object, ...]


def _table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            column.name: pa.array([row[at] for row in rows], column.type.arrow)
            for at, column in enumerate(_COLUMNS)
        }
    )


def _server_text(row: Row) -> str:
    """As `row_text_sql` gives it."""
    cells = []
    for column, value in zip(_COLUMNS, row, strict=True):
        if column.form is TextForm.CHARACTERS:
            text = "" if value is None else str(value)
            cells += ["N" if value is None else str(len(text.encode())), text]
        elif value is None:
            cells.append("N")
        else:
            cells.append(value.hex().upper() if isinstance(value, bytes) else str(value))
    return ",".join(cells)


def _mixed(key: int) -> int:
    """The server's operators on bits take a number modulo 2**64."""
    bits = key % 2**64
    return (bits ^ (bits >> 32)) % 2**32 * 2654435761


def _bucket(key: int) -> int:
    return (_mixed(key) >> 20) % BUCKETS


def _factor(key: int) -> int:
    return (_mixed(key) >> 16) % 2**32 | 1


@given(st.lists(_ROW, max_size=8))
def test_the_text_of_a_row_is_the_database_s(rows: list[Row]) -> None:
    assert row_texts(_table(rows), _COLUMNS).to_list() == [_server_text(row) for row in rows]


@given(_ROW, _ROW)
def test_two_rows_have_one_text_only_if_they_are_equal(one: Row, other: Row) -> None:
    first, second = row_texts(_table([one, other]), _COLUMNS).to_list()
    assert (first == second) == (one == other)


def _sums(rows: list[Row], *, quick: bool) -> BucketSums:
    compared, sums = Compared(_COLUMNS, _COLUMNS[:1], quick), BucketSums(quick)
    table = _table(rows)
    sums.add(compared.buckets(table), compared.hashes(table))
    return sums


def _of_server(rows: list[Row], *, quick: bool) -> BucketSums:
    """The same as its statements add it up, row by row."""
    sums = BucketSums(quick)
    for row in rows:
        text, key = _server_text(row).encode(), row[0]
        assert isinstance(key, int)
        total = int(hashlib.sha1(text).hexdigest()[:16], 16)
        sums.add_sum(_bucket(key), 1, crc32(text) * _factor(key) if quick else total)
    return sums


@given(st.lists(_ROW, max_size=8, unique_by=lambda row: row[0]), st.randoms(), st.booleans())
def test_sums_are_the_database_s_in_whatever_order_the_rows_come(
    rows: list[Row], chance: random.Random, quick: bool
) -> None:
    other = list(rows)
    chance.shuffle(other)
    assert _sums(rows, quick=quick).differing(_of_server(other, quick=quick)) == []


@given(
    st.lists(_ROW, min_size=1, max_size=8, unique_by=lambda row: row[0]),
    st.data(),
    st.booleans(),
)
def test_one_row_that_differs_shows_in_its_bucket_alone(
    rows: list[Row], data: st.DataObject, quick: bool
) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    key = rows[at][0]
    fault = data.draw(st.sampled_from(["gone", "twice", "changed"]))
    other = list(rows)
    if fault == "gone":
        del other[at]
    elif fault == "twice":
        other.append(rows[at])
    else:
        changed = (key, *data.draw(_ROW)[1:])
        assume(changed != rows[at])
        other[at] = changed
    assert isinstance(key, int)
    assert _sums(rows, quick=quick).differing(_sums(other, quick=quick)) == [_bucket(key)]


@given(st.lists(_ROW, min_size=2, max_size=8, unique_by=lambda row: row[0]), st.booleans())
def test_two_rows_that_swap_a_value_are_noticed(rows: list[Row], quick: bool) -> None:
    (first, second), rest = rows[:2], rows[2:]
    assume(first[1] != second[1])
    swapped = [(first[0], second[1], *first[2:]), (second[0], first[1], *second[2:])]
    assert _sums(rows, quick=quick).differing(_sums([*swapped, *rest], quick=quick))


def test_with_an_xor_of_crc32_they_would_not_be() -> None:
    texts = [b"1,1,a", b"2,1,b", b"1,1,b", b"2,1,a"]
    one, two, three, four = map(crc32, texts)
    assert one ^ two == three ^ four
    assert (one + two) % 2**64 != (three + four) % 2**64


def test_keys_of_the_lake_are_constants_that_the_database_reads_exactly() -> None:
    columns = {
        "d": DatabaseColumn("d", "datetime(6)"),
        "t": DatabaseColumn("t", "time(2)"),
        "s": DatabaseColumn("s", "varchar(9)", "latin1", "latin1_swedish_ci"),
        "b": DatabaseColumn("b", "varbinary(9)"),
        "y": DatabaseColumn("y", "date"),
    }
    key = key_columns(list(columns), columns)
    assert isinstance(key, tuple)
    types = {"d": "timestamp", "t": "long", "s": "string", "b": "binary", "y": "date"}
    read = [_read_as(columns[name], types[name]) for name in columns]
    moment = dt.datetime(1, 2, 3, 4, 5, 6, 7, tzinfo=_UTC)
    rows = pa.table(
        {
            "d": pa.array([moment], pa.timestamp("us", "UTC")),
            "t": pa.array([-(838 * 3600 * 10**6 + 250_000)], pa.int64()),
            "s": ["o'ä"],
            "b": [b"\0'"],
            "y": pa.array([dt.date(9999, 12, 31)]),
        }
    )
    assert keys_sql(key, read, rows) == (
        "(`d`,`t`,`s`,`b`,`y`) in (('0001-02-03 04:05:06.000007','-838:00:00.250000',"
        "convert(_utf8mb4 X'6f27c3a4' using latin1) collate latin1_swedish_ci,"
        "X'0027','9999-12-31'))"
    )
    first = pa.array([dt.datetime(1970, 1, 1, tzinfo=_UTC)], pa.timestamp("us", "UTC"))
    zero = rows.set_column(0, "d", first).select(["d", "b"])
    assert keys_sql((key[0], key[3]), (read[0], read[3]), zero) == (
        "((timestampdiff(microsecond,'1970-01-01',`d`))=0 and `b`=X'0027')"
    )
    wide = DatabaseColumn("w", "decimal(65,30)")
    number = key_columns(["w"], {"w": wide})
    assert isinstance(number, tuple)
    odd = pa.table({"w": ["1) or (1", "-0.5"]})
    assert keys_sql(number, [_read_as(wide, "string")], odd) == "(`w`) in ((null),(-0.5))"
    assert keys_sql(key, read, rows.slice(1)) == "0"
    assert all(isinstance(column, KeyColumn) for column in key)
    assert np.array_equal(Compared(tuple(read), tuple(read)).buckets(rows.slice(1)), [])


def _read_as(column: DatabaseColumn, to: str) -> ReadColumn:
    found = read_column(column, ColumnType.parse(to), "")
    assert isinstance(found, ReadColumn)
    return found


def test_the_quick_sum_shows_a_swap_that_the_sum_of_crc32_does_not() -> None:
    chance = random.Random(1)
    columns = tuple(_read(name, "int", "integer") for name in ("id", "a", "b"))

    def plain(a: list[int], b: list[int]) -> int:
        rows = zip((1, 2), a, b, strict=True)
        return sum(crc32(",".join(map(str, row)).encode()) for row in rows)

    def quick(a: list[int], b: list[int]) -> int:
        arrays = [pa.array(values, pa.int32()) for values in ([1, 2], a, b)]
        rows = pa.table(dict(zip(("id", "a", "b"), arrays, strict=True)))
        return int(Compared(columns, columns[:1], quick=True).hashes(rows).sum())

    while True:
        a, b = (chance.sample(range(100_000, 1_000_000), 2) for _ in range(2))
        if plain(a, b) == plain(a, b[::-1]):
            break
    assert quick(a, b) != quick(a, b[::-1])
