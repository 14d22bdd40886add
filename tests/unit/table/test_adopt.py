"""Adoption: what is refused and with which message; what is rewritten; what is unchanged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.apps.lake import require_lake
from lakesplice.errors import (
    TableNotFoundError,
    UsageError,
)
from lakesplice.planning.by_hand.hand_fed_schema import adopted_schema
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.adoption.adopt import plan_adoption
from lakesplice.table.by_hand.adoption.adopted_files import look_into
from lakesplice.table.by_hand.adoption.adopted_keys import indexed
from tests.support.adopting import TWO, folder, refusal, some_rows


def test_repeated_keys_are_refused_with_their_number_and_some_of_them(tmp_path: Path) -> None:
    folder(tmp_path, a=TWO, b=pa.table({"id": [3, 2, 2], "name": ["c", "d", "e"]}))
    message = refusal(tmp_path)
    assert "rows=2" in message
    assert "examples=[{'id': 2}, {'id': 2}]" in message
    assert Table.adopt(tmp_path, key=["id", "name"]).read().num_rows == 5


def test_null_keys_are_refused_with_their_number_and_some_of_them(tmp_path: Path) -> None:
    folder(tmp_path, a=TWO, b=pa.table({"id": [None, 4, None], "name": ["c", "d", "e"]}))
    message = refusal(tmp_path)
    assert "rows=2" in message
    assert "row 0 of b.parquet" in message


@pytest.mark.slow
def test_keys_are_looked_for_in_any_number_of_parts(tmp_path: Path) -> None:
    folder(tmp_path, a=some_rows(0, 700), b=some_rows(600, 900))
    store = LocalStore(tmp_path)
    of_both = adopted_schema(some_rows().schema, ["id"])
    files = {
        number: look_into(store, f"{name}.parquet", of_both, None)
        for number, name in enumerate("ab")
    }
    for size in (1 << 22, 100, 7):
        known: list[int] = []
        with pytest.raises(UsageError, match="rows=100"):
            known.extend(len(one.high) for one in indexed(store, of_both, files, size))
        assert sum(known) == 900


def test_a_key_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert "key" in refusal(folder(tmp_path, a=TWO), key="other")


def test_a_file_without_the_key_is_refused(tmp_path: Path) -> None:
    assert "b.parquet" in refusal(folder(tmp_path, a=TWO, b=pa.table({"name": ["x"]})))


def test_an_empty_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="nothing to adopt"):
        Table.adopt(tmp_path, key=["id"])


def test_a_table_of_ours_is_refused(tmp_path: Path) -> None:
    Table.create(tmp_path, TWO, key=["id"])
    assert "already" in refusal(tmp_path)


@pytest.mark.parametrize("name", [".hoodie", "metadata", "_spark_metadata"])
def test_files_that_other_metadata_lists_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "x").touch()
    assert name in refusal(folder(tmp_path, a=TWO))


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    folder(tmp_path, a=TWO)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 of a kind PAR1")
    assert "b.parquet" in refusal(tmp_path)


def test_all_that_stands_in_the_way_of_a_folder_is_reported_at_once(tmp_path: Path) -> None:
    one = pa.table({"id": [1], "tags": [["x"]], "a b": [1], "n": [1]})
    message = refusal(folder(tmp_path, a=one, b=pa.table({"id": [2], "n": ["x"]})))
    for part in ("'tags'", "'a b'", "'n' is int64 in a.parquet and string in b.parquet"):
        assert part in message


def test_a_folder_that_contains_tables_or_is_inside_one_is_not_adopted(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    inner = Table.create(tmp_path / "shop/orders", rows, key=["id"])
    inner.upsert(pa.table({"id": [1]}))
    inner.compact()  # its former base file is still there
    for outer in (tmp_path, tmp_path / "shop"):
        for call in (
            lambda at: Table.adopt(at, key=["id"]),
            lambda at: Table.adoption(at, key=["id"]),
            lambda at: Table.create(at, rows, key=["id"]),
        ):
            with pytest.raises(UsageError, match="contains other tables"):
                call(outer)
    with pytest.raises(UsageError, match="one above it is a table"):
        Table.create(tmp_path / "shop/orders/base/more", rows, key=["id"])
    for lake in (tmp_path / "shop/orders", tmp_path / "shop"):
        with pytest.raises(UsageError, match="is a table"):
            require_lake(LocalStore(lake))
    require_lake(LocalStore(tmp_path))


@pytest.mark.parametrize("log", ["a/.hoodie/x", "a/metadata/v1.metadata.json", "a/_delta_log/0"])
def test_a_folder_with_a_table_of_others_in_it_is_refused(tmp_path: Path, log: str) -> None:
    (tmp_path / log).parent.mkdir(parents=True)
    (tmp_path / log).touch()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a/data.parquet")
    with pytest.raises(UsageError, match="tables=\\['a'\\]"):
        plan_adoption(LocalStore(tmp_path), ["id"])


def test_no_table_is_made_where_readers_of_its_log_would_not_find_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rename the folder"):
        Table.create(tmp_path / "a%41b/t", pa.table({"id": [1]}), key=["id"])
    with pytest.raises(UsageError, match="rename the folder"):
        require_lake(LocalStore(tmp_path / "a%41b"))
