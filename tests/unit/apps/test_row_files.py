"""Tables are filled from files that were written at a position, and the stream continues there."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.apps.bootstrap.files_fill import (
    binlog_place,
    declared_types,
    require_key,
    require_stream_since,
)
from lakesplice.apps.bootstrap.repeated_keys import repeated_keys
from lakesplice.apps.bootstrap.row_files import FilePart, RowFiles, file_parts, split_glob
from lakesplice.errors import UsageError
from lakesplice.formats.events import TypeHistory, TypeVersion, declare
from lakesplice.model.choices import TypeMapping
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.shadow_plan import FilledFrom
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.read_rows import ReadRows
from lakesplice.storage.local import LocalStore
from lakesplice.testing.doubles import FixedClock
from tests.support.command_line import CommandLine
from tests.support.shadows import READ_MS, Filling, ReadSource
from tests.support.simulated import SMALL, driver_of, folder, row, rows_of


@pytest.fixture
def path() -> Iterator[Path]:
    with folder() as made:
        yield made


def written(path: Path, rows: pa.Table) -> None:
    """The rows, half of them as two row groups of Parquet, half as CSV with quotes."""
    half = rows.num_rows // 2
    pq.write_table(rows.slice(0, half), path / "a.parquet", row_group_size=1)
    lines = [",".join(rows.column_names)]
    for one in rows.slice(half).to_pylist():
        cells = ("" if v is None else f'"{v}"' for v in one.values())
        lines.append(",".join(cells))
    (path / "b.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_rows_of_files_and_the_changes_since_their_position_are_the_table(path: Path) -> None:
    source, lake = ReadSource(), LocalStore(path / "lake")
    source.database.load(SMALL.name, [row(key, key) for key in range(4)])
    source.topic.append(0, source.put(0))  # before the files: their rows have it
    read = source.read(None, None)
    (path / "dump").mkdir()
    written(path / "dump", read.images)
    source.topic.append(0, source.put(1))
    source.topic.append(1, source.delete(2)[:1])

    files = LocalStore(path / "dump")
    parts = file_parts(files, "*")
    assert [(part.path, part.first, part.stop) for part in parts] == [
        ("a.parquet", 0, 1),
        ("a.parquet", 1, 2),
        ("b.csv", 0, 2),
    ]
    filling = Filling(
        source,
        lake,
        FixedClock(),
        7,
        filled_from=FilledFrom.FILES,
        parts=[part.as_bound for part in parts],
        start=read.position,
    )
    assert filling.plan.chunks == 3
    filling.driver.batch()
    for chunk, bound in enumerate(filling.plan.bounds):
        images = RowFiles(files, read.schema).rows(FilePart.of_bound(bound))
        filling.commit(chunk, ReadRows(read.schema, images, read.position, READ_MS))
    filling.driver.batch()
    filling.swap()
    assert rows_of(filling.store) == source.present()
    source.topic.append(1, source.put(9))
    driver_of(source, lake, generation=2, seed=5).batch()
    assert rows_of(filling.store) == source.present()


def test_a_file_that_is_not_the_tables_is_refused(path: Path) -> None:
    source, files = ReadSource(), LocalStore(path)
    source.database.load(SMALL.name, [row(1, 1)])
    read = source.read(None, None)
    written(path, pa.concat_tables([read.images] * 2))
    parquet, text = file_parts(files, "*")
    less = SourceSchema(read.schema.fields[:1], read.schema.key)
    with pytest.raises(UsageError, match="columns that the topic's newest record lacks"):
        RowFiles(files, less).rows(parquet)
    assert RowFiles(files, less, {"name", "n"}).rows(parquet).column_names == ["id"]
    (path / "b.csv").write_text("id,name\n1,x\n")
    with pytest.raises(UsageError, match="changed since it was listed"):
        RowFiles(files, read.schema).rows(text)
    (again,) = file_parts(files, "*.csv")
    moment_ns = (path / "b.csv").stat().st_mtime_ns
    (path / "b.csv").write_text("id,name\n2,x\n")
    os.utime(path / "b.csv", ns=(moment_ns, moment_ns + 10**9))
    with pytest.raises(UsageError, match="changed since it was listed"):
        RowFiles(files, read.schema).rows(again)
    (again,) = file_parts(files, "*.csv")
    with pytest.raises(UsageError, match="lacks columns"):
        RowFiles(files, read.schema).rows(again)
    (path / "b.csv").write_text("id,name,n\n1,y,1\n,y,1\n")
    (again,) = file_parts(files, "*.csv")
    for read_rows in (RowFiles(files, read.schema).rows, RowFiles(files, read.schema).keys):
        with pytest.raises(UsageError, match=r"no value of its key.*column='id'"):
            read_rows(again)
    (path / "b.csv").write_text("id,name,n\nx,y,1\n")
    (again,) = file_parts(files, "*.csv")
    with pytest.raises(UsageError, match="'x' isn't a long"):
        RowFiles(files, read.schema).rows(again)
    with pytest.raises(UsageError, match="no file matches"):
        file_parts(files, "c*")
    (path / "c.orc").write_bytes(b"")
    with pytest.raises(UsageError, match=r"neither \.parquet nor \.csv"):
        file_parts(files, "c*")


def test_timestamps_of_the_older_kind_are_taken_beyond_the_range_of_nanoseconds(
    path: Path,
) -> None:
    """As nanoseconds the year 9999 wraps around. A list of them is refused, as other lists."""
    moments = [
        dt.datetime(year, 12, 31, 23, 59, 59, 999_999, dt.UTC) for year in (1000, 2026, 9999)
    ]
    kind = SourceField("at", ColumnType.parse("timestamp"), "")
    for name, values in (
        ("a", pa.array([*moments, None], pa.timestamp("us"))),
        ("b", pa.array([1_000, 1_001], pa.timestamp("ns"))),
        # As microseconds it would be in the year 1970.
        ("b2", pa.array([-(-(1 << 64) // 10**6)], pa.timestamp("s"))),
        ("c", pa.array([moments], pa.list_(pa.timestamp("us")))),
    ):
        made = pa.table({"at": values})
        pq.write_table(made, path / f"{name}.parquet", use_deprecated_int96_timestamps=True)
    files = LocalStore(path)
    good, fraction, distant, nested = file_parts(files, "*.parquet")
    reading = RowFiles(files, SourceSchema((kind,), ()))
    found = reading.rows(good)["at"].to_pylist()
    assert found == [*moments, None]
    with pytest.raises(UsageError, match="fraction of a microsecond"):
        reading.rows(fraction)
    with pytest.raises(UsageError, match="beyond the year 9999"):
        reading.rows(distant)
    with pytest.raises(UsageError, match="can't be a timestamp"):
        reading.rows(nested)


def test_rows_are_mapped_as_those_of_records(path: Path) -> None:
    fields = tuple(
        SourceField(name, ColumnType.parse(kind), "")
        for name, kind in (("n", "decimal(12,10)"), ("u", "decimal(20,0)"))
    )
    mappings = (TypeMapping.DECIMAL_TO_DOUBLE, TypeMapping.BIGINT_UNSIGNED_TO_BIGINT)
    number = Decimal("-0.0082522782")
    (path / "a.csv").write_text(f"n,u\n{number},7\n")
    (path / "b.csv").write_text(f"n,u\n1,{2**63}\n")
    files = LocalStore(path)
    good, beyond = file_parts(files, "*.csv")
    reading = RowFiles(files, SourceSchema(fields, ()), mappings=mappings)
    assert reading.rows(good).to_pydict() == {"n": [float(number)], "u": [7]}
    with pytest.raises(UsageError, match=r"type_mapping.*column='u'"):
        reading.rows(beyond)


def test_the_newest_types_of_the_sources_ddl_come_before_declared_ones() -> None:
    versions = (
        TypeVersion(P, declare({"a": "int"})),
        TypeVersion(AFTER, declare({"a": "year"})),
    )
    reading = RecordReading(
        table=TableName("shop", "goods"),
        declared=declare({"a": "int", "b": "time"}),
        history=TypeHistory(versions),
    )
    found = declared_types(reading)
    assert {name: of.written for name, of in found.items()} == {"a": "year", "b": "time"}
    assert declared_types(replace(reading, history=None, declared=None)) == {}


@pytest.mark.slow
def test_rows_with_a_key_that_other_rows_have_are_counted_in_all_files(path: Path) -> None:
    fields = tuple(
        SourceField(name, ColumnType.parse(kind), "")
        for name, kind in (("id", "long"), ("part", "string"), ("n", "decimal(9,2)"))
    )
    numbers = [*range(2_000), 7]
    rows = pa.table({"id": numbers, "n": numbers, "part": ["a"] * len(numbers)})
    pq.write_table(rows, path / "a.parquet", row_group_size=700)
    (path / "b.csv").write_text("part,id,n\nb,7,1\na,8,2\nb,9,3\nb,007,4\n")
    (path / "c.csv").write_text("part,id,n\n")
    files = LocalStore(path)
    reading = RowFiles(files, SourceSchema(fields, ("id", "part")))
    with repeated_keys() as keys:
        for part in file_parts(files, "*"):
            found = reading.keys(part)
            assert found.column_names == ["id", "part"]
            keys.add(found)
        assert keys.count() == len([("a", 7), ("a", 8), ("b", 7)])


class Counted(LocalStore):
    """Counts how often a file is opened, and has the files that are open."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.opened: list[pa.NativeFile] = []

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        self.opened.append(super().open(path, tail_bytes))
        return self.opened[-1]


_BLOCK, _PART, _AHEAD = 1 << 10, 8 << 10, 34 << 10


@pytest.mark.slow
def test_a_csv_file_is_read_block_by_block_in_one_pass(path: Path) -> None:
    source, files = ReadSource(), Counted(path)
    source.database.load(SMALL.name, [row(1, 1)])
    schema = source.read(None, None).schema
    values = [(key, f"line\n{key}", key % 7) for key in range(8_000)]
    lines = [f'{key},"{name}",{n}\n' for key, name, n in values]
    (path / "a.csv").write_text("id,name,n\n" + "".join(lines))
    (path / "b.csv").write_text("id,name,n\n")
    *parts, empty = file_parts(files, "*.csv", block_bytes=_BLOCK)
    size = (path / "a.csv").stat().st_size
    assert size // _PART <= len(parts) <= size // _PART + 1
    assert [part.first for part in parts] == [0, *(part.stop for part in parts[:-1])]

    files.opened.clear()
    reading = RowFiles(files, schema, block_bytes=_BLOCK)
    read = []
    for number, part in enumerate(parts, 1):
        read.append(reading.rows(part))
        assert files.opened[-1].tell() <= number * _PART + _AHEAD < size + _PART + _AHEAD
    assert len(files.opened) == 2, "for its header, and for its rows"
    columns = pa.concat_tables(read).to_pydict()
    assert list(zip(*columns.values(), strict=True)) == values
    assert RowFiles(files, schema, block_bytes=_BLOCK).rows(parts[7]) == read[7]
    assert reading.rows(parts[3]) == read[3], "a part that was read before is read again"
    assert reading.rows(empty).num_rows == 0
    reading.close()
    with pytest.raises(UsageError, match="a row that is too long"):
        file_parts(files, "a.csv", block_bytes=8)
    with pytest.raises(UsageError, match="give --again"):
        FilePart.of_bound(("a.csv", "0", "9"))


def test_a_file_that_is_refused_is_closed(path: Path) -> None:
    files = Counted(path)
    (path / "a.csv").write_text("id\n" + "9" * 100 + "\n")
    (path / "b.parquet").write_bytes(b"no Parquet")
    for name, why in (("a.csv", "too long"), ("b.parquet", "isn't Parquet")):
        with pytest.raises(UsageError, match=why):
            file_parts(files, name, block_bytes=8)
    assert len(files.opened) == 4
    assert all(file.closed for file in files.opened)


def test_rows_without_a_key_are_refused() -> None:
    schema = ReadSource().read(None, None).schema
    require_key(schema)
    with pytest.raises(UsageError, match="no primary or unique key"):
        require_key(SourceSchema(schema.fields, ()))


def test_a_glob_has_a_folder_and_the_rest() -> None:
    assert split_glob("dump/2026/*.parquet") == ("dump/2026", "*.parquet")
    assert split_glob("s3://b/a/day=*/x.csv") == ("s3://b/a", "day=*/x.csv")
    assert split_glob("x.csv") == (".", "x.csv")
    assert split_glob("/x.csv") == ("/", "x.csv")


P, BEFORE, AFTER = Position(3, 50), Position(3, 40), Position(3, 60)


def test_a_topic_must_have_every_change_since_the_files() -> None:
    require_stream_since(P, {0: Offset(0), 1: Offset(7)}, {0: AFTER, 1: BEFORE})
    require_stream_since(P, {0: Offset(0)}, {0: AFTER}, trusted=True)
    with pytest.raises(UsageError, match=r"retention deleted records.*partitions=\[1\]"):
        require_stream_since(P, {0: Offset(0), 1: Offset(7)}, {0: BEFORE, 1: AFTER}, trusted=True)
    with pytest.raises(UsageError, match=r"retention deleted records.*partitions=\[1\]"):
        require_stream_since(P, {0: Offset(0), 1: Offset(7)}, {0: BEFORE})
    with pytest.raises(UsageError, match="give --connector-ran"):
        require_stream_since(P, {0: Offset(0), 1: Offset(0)}, {0: AFTER})


def test_a_position_is_a_file_and_an_offset(capsys: pytest.CaptureFixture[str]) -> None:
    place = binlog_place("mysql-bin.000012:345")
    assert (place.file, place.offset) == ("mysql-bin.000012", 345)
    for wrong in ("mysql-bin.000012", "345", "bin:345", "mysql-bin.000012:x"):
        with pytest.raises(UsageError, match="write the position as"):
            binlog_place(wrong)
    ended = CommandLine(capsys)("bootstrap", "--files", "a/*.csv")
    assert (ended.code, "together" in ended.err) == (2, True)
