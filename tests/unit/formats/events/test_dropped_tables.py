"""Which statements dropped a table, and whether the source has a table of its name again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lakesplice.formats.events.ddl import DropKind, SchemaChange, SchemaHistory, read_schema_change
from lakesplice.model.names import TableName
from tests.support import machine
from tests.support.schema_changes import column, connect_record, maxwell_record

_X = TableName("shop", "x")
_CREATE = "CREATE TABLE x (id int, n int)"
_COLUMNS = [column("id", "INT"), column("n", "INT")]


class _Told:
    """A history and the places of the statements that it was told."""

    def __init__(self) -> None:
        self.history = SchemaHistory()
        self._pos = 0

    def tell(self, *statements: str, snapshot: str = "false", gtid: str | None = None) -> _Told:
        for sql in statements:
            self._pos += 100
            source: dict[str, Any] = {"snapshot": snapshot, "gtid": gtid}
            self.take(connect_record(sql, pos=self._pos, changes=None, **source))
        return self

    def take(self, record: bytes | None) -> None:
        change = read_schema_change(record)
        if isinstance(change, SchemaChange):
            self.history.take(change)

    def drops(self, table: TableName = _X) -> list[tuple[int, bool, bool]]:
        """Places, and whether the name is taken again and the table lives on."""
        return [
            (drop.position.parts[2], drop.again, drop.lives_on)
            for drop in self.history.drops(table)
            if drop.kind is DropKind.DROP
        ]

    def moves(self, name: str) -> list[DropKind]:
        """What moved rows of a table, DROPs apart, unless it has its rows after all."""
        return [
            drop.kind
            for drop in self.history.drops(TableName("shop", name))
            if drop.kind is not DropKind.DROP
            and not drop.lives_on
            and not (drop.kind is DropKind.SET_ASIDE and not drop.again)
        ]


def test_a_drop_has_its_place_and_transaction_and_is_over_once_the_name_is_taken() -> None:
    told = _Told().tell(_CREATE, "DROP TABLE x", gtid="0-1-7")
    assert told.drops() == [(200, False, False)]
    assert [drop.gtid for drop in told.history.drops(_X)] == ["0-1-7"]
    told.tell("CREATE TABLE x (id int)", "DROP TABLE `shop`.`x`, y", "CREATE TABLE x LIKE z")
    assert told.drops() == [(200, True, False), (400, True, False)]
    assert told.drops(TableName("shop", "y")) == [(400, False, False)]
    assert told.history.drop_count == 3


def test_drops_that_a_connector_reports_before_its_snapshot_do_not_count() -> None:
    told = _Told().tell(_CREATE)
    for mark in ("true", "first", "last"):
        told.tell("DROP TABLE IF EXISTS `shop`.`x`", snapshot=mark)
        told.tell("DROP DATABASE IF EXISTS `shop`", _CREATE, snapshot=mark)
    assert told.drops() == []
    told.tell("DROP TABLE x").tell(_CREATE, snapshot="true")
    assert [again for _, again, _ in told.drops()] == [True]


def test_a_dropped_database_drops_its_tables() -> None:
    told = _Told().tell(_CREATE, "CREATE TABLE other.x (id int)", "DROP DATABASE shop")
    assert told.drops() == [(300, False, False)]
    assert told.drops(TableName("other", "x")) == []


def test_create_or_replace_drops_what_it_replaces() -> None:
    told = _Told().tell(_CREATE, "CREATE OR REPLACE TABLE x (id int)")
    assert told.drops() == [(200, True, False)]
    told.take(
        connect_record(
            "CREATE OR REPLACE TABLE x (id int)", pos=900, changes=[("CREATE", "x", _COLUMNS)]
        )
    )
    assert told.drops() == [(200, True, False), (900, True, False)]


_OTHER = "CREATE TABLE y (id int, n int)"
_SWAP = "RENAME TABLE x TO tmp, y TO x, tmp TO y"


@pytest.mark.parametrize("told_of", [(), (_CREATE,), (_CREATE, _OTHER)])
def test_a_rename_moves_rows_of_both_names(told_of: tuple[str, ...]) -> None:
    told = _Told().tell(*told_of, "RENAME TABLE x TO y")
    assert (told.moves("x"), told.moves("y")) == ([DropKind.LEFT], [DropKind.CAME])
    told = _Told().tell(*told_of, "ALTER TABLE x RENAME TO y, ADD z int")
    assert (told.moves("x"), told.moves("y")) == ([DropKind.LEFT], [DropKind.CAME])


def test_a_swap_moves_rows_of_both_tables_though_their_columns_are_the_same() -> None:
    told = _Told().tell(_CREATE, _OTHER, _SWAP)
    for name in ("x", "y"):
        assert set(told.moves(name)) == {DropKind.LEFT, DropKind.CAME}
    told = _Told().tell(_CREATE, _OTHER)
    for was, is_ in (("x", "tmp"), ("y", "x"), ("tmp", "y")):  # as the connector tells it
        columns = [("ALTER", is_, _COLUMNS, was)]
        told.take(connect_record(f"RENAME TABLE {was} TO {is_}", pos=900, changes=columns))
    for name in ("x", "y"):
        assert set(told.moves(name)) == {DropKind.LEFT, DropKind.CAME}


@pytest.mark.parametrize(
    ("copy", "aside"),
    [
        ("_x_gho", "_x_del"), ("_x_gho", "_x_20260102030405_del"), ("_x_new", "_x_old"),
        ("__x_new", "__x_old"), ("__osc_new_x", "__osc_old_x"), ("lhmn_x", "lhma_2026_x"),
    ],
)  # fmt: skip
def test_an_online_tool_s_copy_has_the_table_s_rows(copy: str, aside: str) -> None:
    made = (_CREATE, f"CREATE TABLE {copy} LIKE x", f"ALTER TABLE {copy} ADD m int")
    told = _Told().tell(*made, f"RENAME TABLE x TO {aside}, {copy} TO x")
    assert [told.moves(name) for name in ("x", copy, aside)] == [[], [], []]
    told = _Told().tell(*made, f"RENAME TABLE x TO {aside}", f"RENAME TABLE {copy} TO x")
    assert [told.moves(name) for name in ("x", copy, aside)] == [[], [], []]
    told = _Told().tell(*made, f"RENAME TABLE x TO {aside}", "CREATE TABLE x (id int)")
    assert told.moves("x") == [DropKind.SET_ASIDE], "another table has the name"
    told = _Told().tell(_CREATE, f"CREATE TABLE {copy} (k int)", f"RENAME TABLE {copy} TO y")
    assert told.moves("y") == [DropKind.CAME], "it is no copy of that"


@pytest.mark.parametrize(
    "rest",
    [
        "DROP PARTITION p0", "DROP PARTITION p0, p1", "TRUNCATE PARTITION ALL",
        "IMPORT TABLESPACE", "EXCHANGE PARTITION p0 WITH TABLE y", "CONVERT PARTITION p TO TABLE y",
    ],
)  # fmt: skip
def test_statements_about_partitions_move_rows(rest: str) -> None:
    told = _Told().tell(_CREATE, f"ALTER TABLE x {rest}")
    assert told.moves("x") == [DropKind.PARTITION]
    assert told.moves("y") == ([DropKind.PARTITION] if "TABLE y" in rest else [])
    told = _Told().tell(_CREATE)
    record = connect_record(f"ALTER TABLE x {rest}", pos=900, changes=[("ALTER", "x", _COLUMNS)])
    told.take(record)
    assert told.moves("x") == [DropKind.PARTITION]
    assert told.history.table(_X)[-1].columns is not None, "its columns are known still"


def test_a_table_that_becomes_a_partition_is_gone() -> None:
    told = _Told().tell(
        _CREATE, "ALTER TABLE z CONVERT TABLE x TO PARTITION p VALUES LESS THAN (9)"
    )
    assert told.drops() == [(200, False, False)]
    assert told.moves("z") == [DropKind.PARTITION]


@pytest.mark.parametrize(
    "sql", ["RENAME TABLE x TO other.x", "RENAME TABLES shop.x WAIT 5 TO other.x, a TO b",
            "ALTER TABLE IF EXISTS x NOWAIT RENAME AS other.x", "ALTER TABLE x RENAME = other.x"],
)  # fmt: skip
def test_a_rename_into_another_database_moves_rows_of_both_names(sql: str) -> None:
    told = _Told().tell(_CREATE, sql)
    assert told.moves("x") == [DropKind.LEFT]
    there = told.history.drops(TableName("other", "x"))
    assert [drop.kind for drop in there] == [DropKind.CAME]
    assert told.history.table(TableName("other", "x"))[-1].columns is not None


@pytest.mark.parametrize(
    "rest",
    [
        "ADD PARTITION (PARTITION p VALUES IN (1))", "ADD PARTITION PARTITIONS 3",
        "REBUILD PARTITION p", "COALESCE PARTITION 2", "ANALYZE PARTITION ALL",
        "REORGANIZE PARTITION p INTO (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS"
        " THAN (9))", "REORGANIZE PARTITION", "REMOVE PARTITIONING", "OPTIMIZE PARTITION p, q",
        "PARTITION BY HASH (id) PARTITIONS 4",
    ],
)  # fmt: skip
def test_other_statements_about_partitions_move_none(rest: str) -> None:
    assert _Told().tell(_CREATE, f"ALTER TABLE x {rest}").moves("x") == []


def test_a_name_that_no_table_has_is_not_dropped() -> None:
    told = _Told().tell(_CREATE, "RENAME TABLE x TO y", "DROP TABLE IF EXISTS x")
    assert told.drops() == []
    told.tell("DROP TABLE IF EXISTS z", "DROP TABLE IF EXISTS z")
    assert len(told.drops(TableName("shop", "z"))) == 2, "nothing was told of it before"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TEMPORARY TABLE x",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `x`",
        "CREATE OR REPLACE TEMPORARY TABLE x (id int)",
        "TRUNCATE TABLE x",
        "DROP VIEW x",
        "ALTER TABLE x DROP n",
    ],
)
def test_other_statements_drop_no_table(sql: str) -> None:
    assert _Told().tell(_CREATE, sql).drops() == []


ONLINE = {
    "gh-ost": (
        "CREATE TABLE _x_gho (id int, n int)",
        "ALTER TABLE _x_gho ADD c int",
        "RENAME TABLE x TO _x_del, _x_gho TO x",
        "DROP TABLE IF EXISTS _x_del",
    ),
    "pt-online-schema-change": (
        "CREATE TABLE _x_new (id int, n int)",
        "ALTER TABLE _x_new ADD c int",
        "RENAME TABLE x TO _x_old, _x_new TO x",
        "DROP TABLE IF EXISTS _x_old",
    ),
    "by hand": (
        "CREATE TABLE copy LIKE x",
        "RENAME TABLE x TO old, copy TO x",
        "DROP TABLE old",
    ),
}


@pytest.mark.parametrize("statements", ONLINE.values(), ids=ONLINE)
def test_a_table_that_is_altered_online_was_not_dropped(statements: tuple[str, ...]) -> None:
    assert _Told().tell(_CREATE, *statements).drops() == []


def test_a_table_that_is_dropped_for_its_copy_lives_on() -> None:
    told = _Told().tell(_CREATE, "CREATE TABLE _x_new (id int(11), n int(11))")
    told.tell("ALTER TABLE _x_new ADD c int", "DROP TABLE x")
    assert told.drops() == [(400, False, False)]
    told.tell("RENAME TABLE _x_new TO x")
    assert told.drops() == [(400, True, True)]


def test_a_name_that_another_table_gets_was_dropped() -> None:
    told = _Told().tell(_CREATE, "CREATE TABLE v2 (id int, what text)", "DROP TABLE x")
    told.tell("RENAME TABLE v2 TO x")
    assert told.drops() == [(300, True, False)]


def test_a_connector_that_repeats_itself_drops_nothing_twice() -> None:
    told, drop = _Told().tell(_CREATE), connect_record("DROP TABLE x", pos=500, changes=None)
    again = connect_record(_CREATE, pos=600, changes=None)
    for record in (drop, again, drop, again):
        told.take(record)
    assert told.drops() == [(500, True, False)]


def test_maxwell_tells_of_drops_too() -> None:
    told, table = _Told(), TableName("mx", "x")
    for at, sql in enumerate((_CREATE, "DROP TABLE x", _CREATE, "DROP DATABASE mx"), 1):
        told.take(maxwell_record(sql, pos=100 * at))
    assert told.drops(table) == [(200, True, False), (400, False, False)]


def test_a_name_with_other_characters_than_topics_have_is_found() -> None:
    told = _Told().tell("CREATE TABLE `a-ü` (id int)", "DROP TABLE `a-ü`")
    assert told.drops(TableName("shop", "a-_")) == [(200, False, False)]


def test_a_drop_of_an_unknown_table_makes_no_name_ambiguous() -> None:
    told = _Told().tell("CREATE TABLE `a-ü` (id int)", "DROP TABLE IF EXISTS `a.ü`, `a-é`")
    alike = TableName("shop", "a-_")
    assert [version.columns is not None for version in told.history.table(alike)] == [True]
    assert told.drops(alike) == []


def _captured(connector: str) -> Iterator[bytes | None]:
    captures = machine.shared_dir("examples", "captures")
    for line in (captures / f"debezium-mariadb-{connector}.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["topic"] == connector:
            yield None if record["value"] is None else str(record["value"]).encode()


@pytest.mark.parametrize("connector", ["dbplain", "dbsch", "dbalt", "dbflat"])
def test_in_a_capture_only_the_dropped_table_counts_as_dropped(connector: str) -> None:
    told = _Told()
    for record in _captured(connector):
        told.take(record)
    assert told.drops(TableName("shop", "nopk")) == [(29_555, False, False)]
    assert told.history.drop_count == 1
