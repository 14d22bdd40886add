from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakesplice
from lakesplice.errors import CorruptFileError, MissingFileError, UsageError
from lakesplice.model.change import Op
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.table.reading.table import Table
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import MadeTable

SMALL = TableSchema(
    (
        Column(0, "id", "id", ColumnType(Primitive.LONG), "BIGINT"),
        Column(1, "na_x20_me", "na me", ColumnType(Primitive.STRING), "TEXT"),
        Column(2, "n", "n", ColumnType(Primitive.INTEGER), "INT"),
    ),
    ("id",),
    (0, 3),
)


def small(key: int, name: str | None, n: int | None = None) -> dict[str, object]:
    return {"id": key, "na_x20_me": name, "n": n}


@pytest.fixture
def table(tmp_path: Path) -> MadeTable:
    made = MadeTable(tmp_path, SMALL)
    first = [small(at, f"name {at}", at) for at in range(10)]
    made.insert(first, [small(at, None, at) for at in (20, 21)])
    made.change(
        [(Op.UPDATE, small(3, "changed", 3)), (Op.DELETE, small(4, "name 4", 4))],
        [(Op.UPDATE, small(3, "changed", 33)), (Op.UPDATE, small(5, "name 5", 1000))],
    )
    return made


def outcome(opened: Table) -> pa.Table | CorruptFileError:
    try:
        return opened.read()
    except CorruptFileError as error:
        return error


def ids(rows: pa.Table) -> list[int]:
    found: list[int] = rows.column("id").to_pylist()
    return found


def test_the_real_time_view_lays_the_deltas_over_the_base_files(table: MadeTable) -> None:
    rows = Table(table.store).read()
    assert sorted(rows.to_pylist(), key=lambda r: r["id"]) == table.live()
    assert rows.schema == pa.schema(SMALL.user_fields)


def test_the_read_optimised_view_is_the_base_files_alone(table: MadeTable) -> None:
    rows = Table(table.store).read("read_optimised").to_pylist()
    assert rows[3] == small(3, "name 3", 3)
    assert rows[4] == small(4, "name 4", 4)


@pytest.mark.slow
def test_compaction_makes_the_views_equal_and_changes_neither_real_time_nor_older_versions(
    table: MadeTable,
) -> None:
    before = Table(table.store).read()
    done = table.compact()
    assert done.counts["changes"] == 4
    assert done.counts["rows"] == 3
    now = Table(table.store)
    assert now.read().equals(before)
    assert now.read("read_optimised").equals(before)
    assert now.read(version=2).equals(before)
    assert table.manifest.deltas == ()
    assert len(done.replaced) == 1, "the file without waiting changes stays"


def test_deleted_rows_are_shown_when_asked_for(table: MadeTable) -> None:
    opened = Table(table.store)
    assert 4 not in ids(opened.read())
    shown = opened.read(columns=["id", "_is_deleted"], include_deleted=True).to_pylist()
    assert {r["id"] for r in shown if r["_is_deleted"]} == {4}
    assert ids(opened.read(columns=["id"], filter=pc.field("id") == 4)) == []


def test_columns_go_by_stored_or_source_name_and_keep_the_order_asked_for(table: MadeTable) -> None:
    opened = Table(table.store)
    rows = opened.read(columns=["n", "na me", "_position_offset"])
    assert rows.column_names == ["n", "na me", "_position_offset"]
    assert rows.column("na me").to_pylist()[3] == "changed"
    assert opened.read(columns=["na_x20_me"]).column(0).to_pylist()[3] == "changed"
    with_system = opened.read(include_system=True).column_names
    assert with_system == SMALL.arrow.names
    with pytest.raises(UsageError, match="no such column"):
        opened.read(columns=["nmae"])


def test_filters_follow_the_overlay(table: MadeTable) -> None:
    opened = Table(table.store)
    assert ids(opened.read(filter=pc.field("n") > 30)) == [3, 5]
    assert ids(opened.read("read_optimised", filter=pc.field("n") > 30)) == []
    assert ids(opened.read(columns=["id"], filter=pc.field("na me") == "changed")) == [3]
    assert ids(opened.read(columns=["id"], filter=pc.field("n") == 20)) == [20]
    assert opened.read(columns=["n"], filter=pc.field("id") == 3).to_pylist() == [{"n": 33}]
    nobody = opened.read(filter=pc.field("n") == 77)
    assert nobody.num_rows == 0
    assert nobody.schema == pa.schema(SMALL.user_fields)


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("nobody") == 1,
        pc.field(0) == 1,
        pc.field("na me") > 5,
        pc.field("n"),
        pc.field("n").isin(["é" * 300]),  # pyarrow can't tell its text
        pc.divide(pc.field("n"), 0) == 1,
        "n > 1",
    ],
)
def test_a_filter_that_does_not_fit_is_a_usage_error(
    table: MadeTable, condition: pc.Expression
) -> None:
    with pytest.raises(UsageError):
        Table(table.store).read(filter=condition)


def test_texts_in_a_filter_are_not_taken_for_its_columns(table: MadeTable) -> None:
    opened = Table(table.store)
    for text in ("é" * 300, "FieldPath(0)"):
        assert ids(opened.read(filter=pc.field("na me").isin([text, "changed"]))) == [3]


def test_older_versions_are_read_as_they_were(table: MadeTable) -> None:
    opened = Table(table.store)
    assert opened.version == 2
    assert opened.read(version=1).equals(opened.read("read_optimised"))
    assert Table(table.store, 0).read().num_rows == 0
    assert opened.offsets == {0: 2}
    assert [entry.version for entry in opened.history()] == [2, 1, 0]


def test_a_scan_is_a_stream_of_batches(table: MadeTable) -> None:
    reader = Table(table.store).scan()
    assert isinstance(reader, pa.RecordBatchReader)
    assert sum(batch.num_rows for batch in reader) == 11


@pytest.mark.slow
def test_a_column_added_later_is_null_in_older_files_and_deltas(table: MadeTable) -> None:
    added = Column(3, "added", "added", ColumnType(Primitive.DOUBLE), "DOUBLE")
    table.evolve(SMALL.with_columns([added], SMALL.key))
    table.insert([small(30, "new") | {"added": 1.5}])
    table.change([(Op.UPDATE, small(3, "changed", 33) | {"added": 2.5})])
    expected = [r if "added" in r else {**r, "added": None} for r in table.live()]
    for compacted in (False, True):
        if compacted:
            table.compact()
        rows = Table(table.store).read().to_pylist()
        assert sorted(rows, key=lambda r: r["id"]) == expected
    matching = Table(table.store).read(filter=pc.field("added") > 1)
    assert sorted(ids(matching)) == [3, 30]
    assert Table(table.store).read(version=2).column_names == list(SMALL.names)


@pytest.mark.slow
def test_every_type_survives_deltas_overlay_and_rewrite(tmp_path: Path) -> None:
    made = MadeTable(tmp_path, EVERY_TYPE)
    made.insert([row(1, LOW), row(2, HIGH), row(3, None), row(4, LOW)])
    made.change([(Op.UPDATE, row(1, HIGH)), (Op.UPDATE, row(2, None)), (Op.UPDATE, row(3, LOW))])
    assert Table(made.store).read().to_pylist() == made.live()
    made.compact()
    assert Table(made.store).read("read_optimised").to_pylist() == made.live()


@pytest.mark.parametrize("kind", ["base", "_lakesplice/deltas"])
def test_a_file_that_is_gone_is_named_and_no_row_is_left_out(table: MadeTable, kind: str) -> None:
    path = next(iter(table.store.list(kind)))
    opened = Table(table.store)
    table.store.delete(path)
    with pytest.raises(MissingFileError, match=path):
        opened.read()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["base", "_lakesplice/deltas"])
def test_any_flipped_byte_of_a_file_is_refused_by_name(
    table: MadeTable, kind: str, tmp_path: Path
) -> None:
    opened, truth = Table(table.store), Table(table.store).read()
    path = next(iter(table.store.list(kind)))
    file = tmp_path / path
    data = file.read_bytes()
    header_fields = 0
    for at in range(0, len(data), 7):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        seen = outcome(opened)
        header_fields += seen == truth
        assert seen == truth or path in str(seen)
    file.write_bytes(data[:-20])
    with pytest.raises(CorruptFileError, match=path):
        opened.read()
    assert header_fields < len(data) / 7 * 0.3


def test_a_change_whose_key_is_not_its_rows_is_refused(table: MadeTable) -> None:
    table.addresses[6] = table.addresses[7]
    table.change([(Op.UPDATE, small(6, "lost"))])
    for view_of in (lambda: Table(table.store).read(columns=["n"]), table.compact):
        with pytest.raises(CorruptFileError, match=r"index check.*row=7.*key=6.*found=7"):
            view_of()


@pytest.mark.slow
def test_changes_at_or_below_their_row_are_consumed_without_a_rewrite(table: MadeTable) -> None:
    table.compact()
    table._next = 0
    table.change([(Op.UPDATE, small(3, "stale", 0))])
    table.rows[3] = small(3, "changed", 33)
    done = table.compact()
    assert done.replaced == {}
    assert done.counts["stale"] == 1
    assert table.manifest.deltas == ()


def test_the_package_opens_tables_by_path_and_address(table: MadeTable, tmp_path: Path) -> None:
    for uri in (tmp_path, str(tmp_path), tmp_path.as_uri()):
        assert lakesplice.Table.open(uri).read().num_rows == 11
    assert lakesplice.Table.open(tmp_path, version=0).version == 0


@pytest.mark.slow
def test_a_scan_holds_a_row_group_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakesplice.formats.parquet.write.ROW_GROUP_ROWS_MAX", 4096)
    made = MadeTable(tmp_path, SMALL)
    made.insert([small(at, "x" * 1_000, at) for at in range(20 * 4096)])
    made.change([(Op.UPDATE, small(at, "y" * 1_000, at)) for at in range(0, 20 * 4096, 999)])
    group_bytes = 4096 * 1_000
    before, peak = pa.total_allocated_bytes(), 0
    for _ in Table(made.store).scan():
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert group_bytes < peak < 5 * group_bytes
