"""`lakesplice sql`: statements change rows of tables fed by hand, and say what they did."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.storage.local import LocalStore
from tests.support.by_hand import Row, created, row, rows_of
from tests.support.command_line import CommandLine
from tests.support.partitioned import begun

SOURCE = pa.table({"k": [1, 9], "name": ["new", "nine"], "op": ["u", "i"]})


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    created(LocalStore(tmp_path / "shop/goods"), [row(1), row(2, "b"), row(3, "c", 7)])
    created(LocalStore(tmp_path / "shop/other"), [row(3, "from other"), row(8)])
    pq.write_table(SOURCE, tmp_path / "rows.parquet")
    return tmp_path


def goods(lake: Path) -> dict[int, Row]:
    return rows_of(Table.open(lake / "shop/goods"))


@pytest.mark.slow
def test_statements_update_delete_and_insert(cli: CommandLine, lake: Path) -> None:
    done = cli("sql", lake, "UPDATE shop.goods g SET n = g.n + 1, name = 'x' WHERE g.id < 3")
    assert (done.code, done.out) == (0, "0 inserted, 2 updated, 0 deleted; version 1\n")
    done = cli("sql", lake, "DELETE FROM shop.goods WHERE n = 7", "--json")
    assert done.rows[0]["table"] == "shop.goods"
    assert (done.rows[0]["deleted"], done.rows[0]["version"]) == (1, 2)
    insert = "INSERT INTO shop.goods (id, price) VALUES (5, 2.5), (6, NULL)"
    assert cli("sql", lake, insert).out.startswith("2 inserted")
    assert cli("sql", lake, "INSERT INTO shop.goods SELECT * FROM shop.other").code == 0
    nothing: Row = {"name": None, "n": None, "price": None}
    assert goods(lake) == {
        1: row(1, "x", 2),
        2: row(2, "x", 2),
        3: row(3, "from other"),
        5: {**row(5, price="2.50"), "name": None, "n": None},
        6: {"id": 6, **nothing},
        8: row(8),
    }
    again = cli("sql", lake, insert)
    assert (again.code, "rows with these keys are there already" in again.err) == (2, True)
    assert cli("sql", lake, "DELETE FROM shop.goods", "--merge").out.startswith("0 inserted, 0 up")
    assert not goods(lake)


@pytest.mark.slow
def test_a_merge_takes_a_file_or_a_table(cli: CommandLine, lake: Path) -> None:
    merge = f"""MERGE INTO shop.goods AS t USING '{lake}/rows.parquet' AS s ON t.id = s.k
        WHEN MATCHED AND s.op = 'u' THEN UPDATE SET t.name = s.name, n = t.n * 10
        WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.k, s.name)
        WHEN NOT MATCHED BY SOURCE AND t.n > 5 THEN DELETE"""
    ended = cli("sql", lake, merge)
    assert ended.err == ""
    assert ended.out == "1 inserted, 1 updated, 1 deleted; version 1\n"
    nine: Row = {"id": 9, "name": "nine", "n": None, "price": None}
    assert goods(lake) == {1: row(1, "new", 10), 2: row(2, "b"), 9: nine}
    merge = """MERGE INTO shop.goods USING shop.other ON goods.id = other.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 0"""
    assert cli("sql", lake, merge).code == 0
    assert goods(lake)[8] == row(8)
    assert goods(lake)[2] == row(2, "b", 0)
    refused = cli("sql", lake, f"INSERT INTO shop.goods SELECT * FROM '{lake}/rows.parquet'")
    assert (refused.code, "no such column" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT * FROM shop.goods", "UPDATE, DELETE, MERGE or INSERT INTO"),
        ("UPDATE goods SET n = 1", "database.table"),
        ("UPDATE shop.goods SET n = 1; DELETE FROM shop.goods", "one statement"),
        ("UPDATE shop.goods SET n =", "SQL statement"),
        ("UPDATE shop.goods SET n = 1, n = 2", "two values"),
        ("UPDATE shop.goods g SET n = x.n", "no table has this name"),
        ("UPDATE shop.goods g SET x.n = 1", "only to the table's columns"),
        (
            "MERGE INTO shop.goods t USING shop.other s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET s.n = t.n",
            "only to the table's columns",
        ),
        ("DELETE FROM shop.goods WHERE colour = 1", "no such column"),
        ("INSERT INTO shop.goods VALUES (1, 'a')", "a value for each column"),
        ("INSERT INTO shop.goods (id, id) VALUES (1, 2)", "given twice"),
        ("INSERT INTO shop.goods (id) VALUES ('x')", "doesn't fit its column"),
        ("INSERT INTO shop.goods SELECT id FROM shop.other", "SELECT * FROM a file"),
        ("INSERT INTO shop.goods SELECT * FROM 'none.parquet'", "no such Parquet file"),
        ("INSERT OVERWRITE shop.goods SELECT * FROM shop.other", "INSERT INTO"),
        (
            "MERGE INTO shop.goods t USING shop.other s ON t.id = s.id AND t.n > 1"
            " WHEN MATCHED THEN DELETE",
            "ON must compare",
        ),
        (
            "MERGE INTO shop.goods t USING shop.other s ON t.n = s.n WHEN MATCHED THEN DELETE",
            "all of the table's key",
        ),
        (
            "MERGE INTO shop.goods t USING shop.other s ON t.id = s.none WHEN MATCHED THEN DELETE",
            "no such column",
        ),
        (
            "MERGE INTO shop.goods USING shop.goods ON goods.id = goods.id"
            " WHEN MATCHED THEN DELETE",
            "different names",
        ),
    ],
)
def test_a_statement_that_is_none_changes_nothing(
    cli: CommandLine, lake: Path, statement: str, words: str
) -> None:
    ended = cli("sql", lake, statement)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert Table.open(lake / "shop/goods").version == 0


@pytest.mark.slow
def test_a_table_that_is_not_there_or_that_a_topic_feeds_is_refused(
    cli: CommandLine, lake: Path
) -> None:
    absent = cli("sql", lake, "DELETE FROM shop.good")
    assert (absent.code, "did you mean" in absent.err) == (1, True)
    life = begun(lake)
    fed = cli("sql", lake, f"DELETE FROM {life.driver.name}")
    assert (fed.code, "change its rows there" in fed.err) == (2, True)
