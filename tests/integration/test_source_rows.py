"""Rows that a real connector streams equal the same rows read from their database."""

from __future__ import annotations

import random
import secrets
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka import KafkaConsumer

from lakesplice.apps.verifying.catch_up import CatchUp
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.apps.verifying.stored_sums import StoredSums, place_in_lake
from lakesplice.apps.verifying.verification import (
    VerificationRequest,
    VerificationTools,
    verify_table,
)
from lakesplice.formats.events import DecodeContext
from lakesplice.model.names import TableName
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField
from lakesplice.planning.rows.row_digest import row_digest
from lakesplice.planning.source_rows.columns import ReadColumn, Unreadable, read_column
from lakesplice.planning.source_rows.key_ranges import KeyRange, key_columns
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import Snapshot, SourceConnection, TableChanged
from lakesplice.storage.source.tables import SourceTable
from lakesplice.storage.stores import open_store
from lakesplice.storage.system import SystemClock
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.column_types import every_type
from tests.support.debezium import decode_all
from tests.support.sources import SourceServer, connector, debezium
from tests.support.types import TYPES

_DATABASE, _ROWS = "selected", 300
_SECONDS_MAX = 90.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
# What column_types draws no values for: DDL, and constants of it.
_SHAPES = ("st_geomfromtext('POINT(1 2)',4326)", "st_geomfromtext('LINESTRING(0 0,1 1)')")
_ZERO = "'0000-00-00'"
_ODD: dict[str, tuple[str, tuple[str, ...]]] = {
    "g": ("geometry", _SHAPES),
    "gp": ("point", _SHAPES[:1]),
    "gc": ("geometrycollection", ("st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 2))')",)),
    "w": ("decimal(65,30)", (f"-0.{1:030}", f"{'9' * 35}.5")),
    "dz": ("date", (_ZERO, "'2024-00-10'", "'2024-02-00'", "'0001-01-01'")),
    "dn": ("date not null", (_ZERO, "'2024-00-10'", "'9999-12-31'")),
    "tz": ("datetime(6)", (_ZERO, "'2024-00-10 01:02:03'", "'0001-01-01 00:00:00.000001'")),
    "tn": ("datetime(3) not null", (_ZERO, "'9999-12-31 23:59:59.999'")),
    "sz": ("timestamp(6) null", (_ZERO, "'2038-01-19 03:14:07.999999'")),
    "sn": ("timestamp(6) not null", (_ZERO, "'1970-01-01 00:00:01.000001'")),
    "ez": ("enum('a','b')", ("0", "'a'")),
    "zi": ("int unsigned zerofill", ("42",)),
    "zd": ("decimal(8,2) zerofill", ("3.5",)),
    "y0": ("year", ("0",)),
    "fn": ("float(9,3)", ("123456.789",)),
    "th": ("time(2)", ("'-00:00:00.25'", "'-838:59:58.99'")),
    "cs": ("char(5) character set ucs2", ("'a\"\"b'", "'  c  '")),
    "vs": ("varchar(9) collate utf8mb4_bin", ("'a  '", "''", "'\"'", "',\\n'")),
    "vn": ("varchar(9) default 'x'", ("null",)),
    "vl": ("varchar(255)", ("repeat('ü',255)", "'\\\\'")),
    "st": ("set('a','b')", ("''", "'b,a'")),
    "b3": ("binary(3)", ("'a'", "x'00ff00'")),
    "b9": ("varbinary(300)", ("repeat(x'ff',300)", "x'00'")),
    "bm": ("mediumblob", ("repeat(x'0d0a',9000)", "''")),
}


@pytest.fixture(scope="module")
def server(mariadb: SourceServer) -> SourceServer:
    """The run's MariaDB."""
    return mariadb


def _reals(chance: random.Random) -> tuple[float, float]:
    """Any finite float and double, by their bits."""
    (single,) = struct.unpack("<f", struct.pack("<I", chance.getrandbits(32) & 0xFF7FFFFF))
    (double,) = struct.unpack("<d", struct.pack("<Q", chance.getrandbits(64) & ~(1 << 52)))
    return single, double


def _create(cursor: Any) -> None:
    types = [f"{column.name} {column.ddl}" for column in every_type()]
    types += [f"{name} {ddl}" for name, (ddl, _) in _ODD.items()]
    cursor.execute(f"create database {_DATABASE}")
    cursor.execute(f"use {_DATABASE}")
    cursor.execute("set sql_mode=''")
    cursor.execute(
        f"create table items (id int primary key, fa float, da double, {', '.join(types)})"
    )
    cursor.execute("insert into items(id) values (-1)")


def _insert(cursor: Any, chance: random.Random) -> None:
    types = every_type()
    marks = ",".join(["%s"] * (len(types) + 3))
    names = ",".join(["id", "fa", "da", *(column.name for column in types), *_ODD])
    for row in range(_ROWS):
        drawn = [None if chance.random() < 0.1 else column.draw(chance) for column in types]
        odd = ",".join(chance.choice(constants) for _, constants in _ODD.values())
        cursor.execute(
            f"insert into items({names}) values ({marks},{odd})", [row, *_reals(chance), *drawn]
        )


class Stream:
    """The table `items` of every type, whose changes a real connector sends to Kafka."""

    def __init__(self, cursor: Any, kafka: str, prefix: str) -> None:
        self.cursor, self.topic = cursor, f"{prefix}.{_DATABASE}.items"
        self._consumer = KafkaConsumer(
            self.topic,
            bootstrap_servers=kafka,
            auto_offset_reset="earliest",
            consumer_timeout_ms=500,
        )
        self.records: list[tuple[bytes | None, bytes | None]] = []

    def until(self, count: int) -> None:
        """Wait until so many records were sent."""
        deadline = time.monotonic() + _SECONDS_MAX
        while len(self.records) < count:
            assert time.monotonic() < deadline, f"{len(self.records)} records of {count}"
            self.records += [(record.key, record.value) for record in self._consumer]

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture(scope="module")
def started(
    server: SourceServer, kafka_broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stream]:
    prefix = f"rows-{secrets.token_hex(4)}"
    converters = {
        **{f"{part}.converter": _JSON for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": "true" for part in ("key", "value")},
    }
    with server.connect() as database, database.cursor() as cursor:
        _create(cursor)
        database.autocommit(True)
        running = debezium(
            tmp_path_factory.mktemp("connect"),
            kafka_broker,
            {"one": connector(server, _DATABASE, prefix, 1, **converters)},
        )
        with running:
            found = Stream(cursor, kafka_broker, prefix)
            found.until(1)  # the snapshot: all else comes by the binlog
            yield found
            found.close()


@pytest.fixture
def stream(started: Stream, seed: int) -> Stream:
    """The table with its rows, all of which were sent."""
    if len(started.records) == 1:
        started.cursor.execute("begin")
        _insert(started.cursor, random.Random(seed))
        started.cursor.execute("commit")
        started.until(_ROWS + 1)
    return started


def _selected(
    connection: SourceConnection, table: SourceTable, fields: tuple[SourceField, ...]
) -> pa.Table:
    by_name = {column.name: column for column in table.columns}
    key = key_columns(table.key, by_name)
    assert not isinstance(key, Unreadable)
    columns: list[ReadColumn] = []
    for field in fields:
        assert field.type is not None
        column = read_column(by_name[field.name], field.type, field.source_type)
        assert not isinstance(column, Unreadable), column
        columns.append(column)

    def read(snapshot: Snapshot) -> list[pa.Table]:
        ranges: list[KeyRange] = []
        bound = snapshot.bound(key, None, 100)
        while bound is not None:
            ranges.append(KeyRange(ranges[-1].upto if ranges else None, bound))
            bound = snapshot.bound(key, bound, 100)
        ranges.append(KeyRange(ranges[-1].upto if ranges else None))
        parts = [part for one in ranges for part in snapshot.rows(columns, key, one)]
        assert not any(column.flaws for part in parts for column in part.columns.values())
        return [pa.table({n: c.values for n, c in part.columns.items()}) for part in parts]

    found = connection.in_snapshot(table, read)
    assert not isinstance(found, TableChanged)
    return pa.concat_tables(found).sort_by("id")


def test_rows_of_every_documented_type_have_the_digests_that_they_have_when_streamed(
    server: SourceServer, stream: Stream
) -> None:
    documented = {name for type_ in TYPES for name in type_.name.lower().split(", ")} - {"…"}
    assert documented <= {*(column.ddl for column in every_type()), *(d for d, _ in _ODD.values())}
    records = stream.records[1 : _ROWS + 1]
    decoded = decode_all(records, DecodeContext(TableName(_DATABASE, "items")))
    (block,) = decoded.blocks
    address = DatabaseAddress(server.host, server.port, server.user, _DATABASE, server.password)
    with SourceConnection(address, SystemClock()) as connection:
        table = connection.table(_DATABASE, "items")
        assert table is not None
        fields = block.schema.fields
        selected = _selected(connection, table, fields)
    schema = TableSchema(
        tuple(
            Column(at, field.name, field.name, field.type, field.source_type)
            for at, field in enumerate(fields, 1)
            if field.type is not None
        ),
        ("id",),
    )
    streamed = block.after.sort_by("id")
    inside = pc.and_(
        pc.greater_equal(selected.column("id"), 0), pc.less(selected.column("id"), _ROWS)
    )
    selected = selected.filter(inside)
    different = [
        name
        for name in streamed.column_names
        if not streamed.column(name).combine_chunks().equals(selected.column(name).combine_chunks())
    ]
    assert not different
    assert np.array_equal(row_digest(streamed, schema), row_digest(selected, schema))


class Fed(FixedClock):
    """A lake that takes in what the connector sends whenever somebody waits for it."""

    def __init__(self, stream: Stream, folder: Path) -> None:
        super().__init__()
        self.lake, self.name = open_store(folder / "lake"), TableName(_DATABASE, "items")
        self._stream, self._topic = stream, SimulatedTopic(stream.topic)
        self._driver = SimulatedDriver(self.lake, self._topic, FixedClock(), SeededEntropy(1))
        self._taken = 1  # the snapshot's FLOATs have six digits
        self._take()

    def _take(self) -> None:
        records = self._stream.records[self._taken :]
        self._taken += len(records)
        name = self._topic.name
        self._topic.append(0, [Event(name, key, value, (), 0) for key, value in records])
        self._driver.batch()

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        stream = self._stream
        stream.cursor.execute("insert into items(id) values (%s)", [len(stream.records) + 1000])
        stream.until(len(stream.records) + 1)
        self._take()

    def verified(self, server: SourceServer, **request: Any) -> TableReport:
        address = DatabaseAddress(server.host, server.port, server.user, "", server.password)
        kept = StoredSums(place_in_lake(self.lake, "items", "t"), self)
        read_limit = ReadLimit(FixedClock(), 1e9, 1_000)
        catch_up = CatchUp(self.lake, self, 60.0, self.name)
        with SourceConnection(address, self) as connection:
            access = VerificationTools(self.lake, connection, read_limit, catch_up, kept)
            return verify_table(access, self.name, self._topic.name, VerificationRequest(**request))


def test_rows_of_every_type_are_equal_to_those_that_were_streamed_and_one_fault_is_found(
    server: SourceServer, stream: Stream, tmp_path: Path
) -> None:
    stream.cursor.execute("delete from items where id < 0")
    stream.until(len(stream.records) + 2)
    fed = Fed(stream, tmp_path)
    for quick in (False, True):
        report = fed.verified(server, quick=quick)
        assert report.outcome is ComparisonOutcome.EQUAL, report
        assert report.not_compared == {}
        assert report.rows_at_source >= _ROWS
    stream.cursor.execute("set sql_log_bin = 0")
    stream.cursor.execute("update items set da = 1.5, c_10 = 'other' where id = 17")
    stream.cursor.execute("set sql_log_bin = 1")
    for quick in (False, True):
        (found,) = fed.verified(server, quick=quick).differences
        assert (found.key, set(found.columns)) == ({"id": "17"}, {"da", "c_10"})
