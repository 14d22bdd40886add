"""Records of schema changes show which columns each table had, and from which position on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.events.ddl import (
    SchemaChange,
    SchemaHistory,
    TableVersion,
    history_of,
    read_schema_change,
)
from lakesplice.formats.events.ddl.columns import TableAltered
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.names import TableName
from lakesplice.model.position import Position
from tests.support.debezium import compact
from tests.support.schema_changes import column, connect_record, maxwell_record

_X = TableName("shop", "x")
_AS_BORN = [column("id", "BIGINT", optional=False), column("a", "DECIMAL", 12, 2)]


def _changes(values: Iterable[bytes]) -> list[SchemaChange]:
    read = [read_schema_change(value) for value in values]
    assert all(isinstance(change, SchemaChange) for change in read), read
    return [change for change in read if isinstance(change, SchemaChange)]


def _raw(*statements: str) -> SchemaHistory:
    """A history of which only the statements are known, each at its own place."""
    return history_of(
        _changes(
            connect_record(sql, pos=100 * (at + 1), changes=None)
            for at, sql in enumerate(statements)
        )
    )


def _columns(version: TableVersion) -> list[tuple[str, str]]:
    assert version.columns is not None, version.unknown
    return [(name, found.type) for name, found in version.columns.items()]


def test_the_columns_that_the_connector_tells_count_and_the_statement_gives_their_names() -> None:
    renamed = [*_AS_BORN[:1], column("b", "DECIMAL", 14, 4)]
    history = history_of(
        _changes(
            [
                connect_record("CREATE TABLE x …", changes=[("CREATE", "x", _AS_BORN)]),
                connect_record(
                    "ALTER TABLE x CHANGE a b decimal(14,4)",
                    pos=500,
                    changes=[("ALTER", "x", renamed)],
                ),
            ]
        )
    )
    first, second = history.table(_X)
    assert (first.position, second.position) == (
        Position.of(0, 3, 4, 0, 0),
        Position.of(0, 3, 500, 0, 0),
    )
    assert _columns(second) == [("id", "BIGINT"), ("b", "DECIMAL")]
    assert second.columns is not None
    assert (second.columns["b"].length, second.columns["b"].scale) == (14, 4)
    assert dict(second.renamed) == {"b": "a"}
    assert not second.added


def test_a_record_with_a_schema_around_it_says_the_same() -> None:
    plain = connect_record("CREATE TABLE x …", changes=[("CREATE", "x", _AS_BORN)])
    wrapped = compact({"schema": {"type": "struct"}, "payload": json.loads(plain)})
    assert read_schema_change(wrapped) == read_schema_change(plain)


def test_added_columns_are_distinguished_from_renamed_ones() -> None:
    history = _raw(
        "CREATE TABLE x (id int, a int)",
        "ALTER TABLE x ADD c int NOT NULL DEFAULT 7, RENAME COLUMN a TO b",
    )
    second = history.table(_X)[1]
    assert (dict(second.renamed), set(second.added)) == ({"b": "a"}, {"c"})


def test_a_column_dropped_and_added_again_was_not_renamed() -> None:
    history = _raw(
        "CREATE TABLE x (id int, a int)",
        "ALTER TABLE x RENAME COLUMN a TO b",
        "ALTER TABLE x DROP b, ADD c int",
    )
    assert [dict(version.renamed) for version in history.table(_X)] == [{}, {"b": "a"}, {}]


def test_columns_that_swap_names_or_take_a_free_one_are_distinguished() -> None:
    history = _raw(
        "CREATE TABLE x (a int, b int, c int)",
        "ALTER TABLE x RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "ALTER TABLE x CHANGE c d bigint, ADD c text",
        "ALTER TABLE x DROP d, ADD d int",
    )
    assert [(dict(v.renamed), set(v.added)) for v in history.table(_X)] == [
        ({}, set()),
        ({"a": "b", "b": "a"}, set()),
        ({"d": "c"}, {"c"}),
        ({}, {"d"}),
    ]


def test_columns_in_capitals_are_the_same_columns() -> None:
    history = _raw(
        "CREATE TABLE x (id int, Price int, qty int)",
        "ALTER TABLE x MODIFY PRICE bigint, DROP Qty, ADD note text",
        "ALTER TABLE x RENAME COLUMN price TO cost",
    )
    assert [_columns(version) for version in history.table(_X)[1:]] == [
        [("id", "INT"), ("PRICE", "BIGINT"), ("note", "TEXT")],
        [("id", "INT"), ("note", "TEXT"), ("cost", "BIGINT")],
    ]
    assert [dict(version.renamed) for version in history.table(_X)[1:]] == [
        {"PRICE": "Price"},
        {"cost": "PRICE"},
    ]


GH_OST = (
    "CREATE TABLE x (id int, a decimal(12,2))",
    "create /* gh-ost */ table `shop`.`_x_ghc` (id bigint, hint varchar(64), primary key (id))",
    "create /* gh-ost */ table `shop`.`_x_gho` like `shop`.`x`",
    "alter /* gh-ost */ table `shop`.`_x_gho` CHANGE a b decimal(16,4), ADD c int",
    "create /* gh-ost */ table `shop`.`_x_del` (id int auto_increment primary key)",
    "drop /* gh-ost */ table if exists `shop`.`_x_del`",
    "rename /* gh-ost */ table `shop`.`x` to `shop`.`_x_del`, `shop`.`_x_gho` to `shop`.`x`",
    "drop /* gh-ost */ table if exists `shop`.`_x_ghc`",
    "drop /* gh-ost */ table if exists `shop`.`_x_del`",
)
PT_OSC = (
    "CREATE TABLE x (id int, a decimal(12,2))",
    "CREATE TABLE `shop`.`_x_new` (\n  `id` int,\n `a` decimal(12,2)\n) ENGINE=InnoDB",
    "ALTER TABLE `shop`.`_x_new` CHANGE a b decimal(16,4), ADD c int",
    "CREATE TRIGGER `pt_osc_shop_x_del` AFTER DELETE ON `shop`.`x` FOR EACH ROW DELETE IGNORE"
    " FROM `shop`.`_x_new` WHERE `shop`.`_x_new`.`id` <=> OLD.`id`",
    "RENAME TABLE `shop`.`x` TO `shop`.`_x_old`, `shop`.`_x_new` TO `shop`.`x`",
    "DROP TABLE IF EXISTS `shop`.`_x_old`",
)


@pytest.mark.parametrize("statements", [GH_OST, PT_OSC], ids=["gh-ost", "pt-osc"])
def test_an_online_alteration_is_one_alteration_of_the_table(statements: Sequence[str]) -> None:
    first, second = _raw(*statements).table(_X)
    assert _columns(first) == [("id", "INT"), ("a", "DECIMAL")]
    assert second.columns is not None
    assert {name: found.scale for name, found in second.columns.items()} == {
        "id": None,
        "b": 4,
        "c": None,
    }
    assert (dict(second.renamed), set(second.added)) == ({"b": "a"}, {"c"})


@pytest.mark.parametrize("last_first", [False, True])
def test_an_online_alteration_is_one_as_the_connector_tells_it_too(last_first: bool) -> None:
    altered = [*_AS_BORN[:1], column("b", "DECIMAL", 16, 4), column("c", "INT")]
    swap = [("ALTER", "_x_del", _AS_BORN, "x"), ("ALTER", "x", altered, "_x_gho")]
    history = history_of(
        _changes(
            [
                connect_record("CREATE TABLE x …", changes=[("CREATE", "x", _AS_BORN)]),
                connect_record(GH_OST[2], pos=100, changes=[("CREATE", "_x_gho", _AS_BORN)]),
                connect_record(GH_OST[3], pos=200, changes=[("ALTER", "_x_gho", altered)]),
                connect_record(GH_OST[6], pos=300, changes=swap[::-1] if last_first else swap),
            ]
        )
    )
    _, second = history.table(_X)
    assert second.position == Position.of(0, 3, 300, 0, 0)
    assert (dict(second.renamed), set(second.added)) == ({"b": "a"}, {"c"})
    assert history.table(TableName("shop", "_x_gho"))[-1].columns is None


def test_another_table_under_the_name_is_no_alteration() -> None:
    history = _raw(
        "CREATE TABLE x (id int, a int)",
        "CREATE TABLE y (id int, z int)",
        "ALTER TABLE y RENAME COLUMN z TO b",
        "RENAME TABLE x TO gone, y TO x",
    )
    assert dict(history.table(_X)[1].renamed) == {}


def test_columns_are_unknown_from_a_statement_on_that_cannot_be_parsed() -> None:
    history = _raw(
        "CREATE TABLE x (id int)",
        "CREATE TABLE y (id int)",
        "ALTER TABLE x FROBNICATE",
        "CREATE TABLE z (id int)",
    )
    assert history.unread == 1
    assert history.table(_X)[1].unknown == "'FROBNICATE' isn't a known part of ALTER TABLE"
    assert len(history.table(TableName("shop", "y"))) == 1


def test_an_alteration_that_cannot_have_been_leaves_the_table_unknown() -> None:
    history = _raw("CREATE TABLE x (id int)", "ALTER TABLE x DROP a")
    assert "'a'" in history.table(_X)[1].unknown


def test_a_text_that_is_no_sql_makes_the_tables_unknown_that_it_names() -> None:
    history = _raw("CREATE TABLE x1 (id int)", "CREATE TABLE y1 (id int)", "ALTER TABLE x1 ADD 'a")
    assert history.table(TableName("shop", "x1"))[-1].unknown
    assert len(history.table(TableName("shop", "y1"))) == 1


def test_the_last_of_one_place_counts() -> None:
    history = history_of(
        _changes(
            [
                connect_record("DROP TABLE IF EXISTS x", changes=[("DROP", "x", None)]),
                connect_record("CREATE TABLE x …", changes=[("CREATE", "x", _AS_BORN)]),
            ]
        )
    )
    (version,) = history.table(_X)
    assert version.columns is not None


def test_records_that_come_again_change_nothing() -> None:
    values = [
        connect_record("CREATE TABLE x (id int)", changes=None),
        connect_record("ALTER TABLE x ADD a int", pos=50, changes=None),
    ]
    history = history_of(_changes([*values, *values]))
    assert history.ordered
    assert history.table(_X) == history_of(_changes(values)).table(_X)


def test_places_that_start_over_are_no_order() -> None:
    history = history_of(
        _changes(
            [
                connect_record("CREATE TABLE x (id int)", pos=50, changes=None),
                connect_record("ALTER TABLE x ADD a int", pos=40, changes=None),
            ]
        )
    )
    assert not history.ordered


def test_a_table_is_found_by_its_name_in_topics_if_only_one_can_be_meant() -> None:
    history = _raw("CREATE TABLE `a b` (id int)", "CREATE TABLE `c d` (id int)")
    assert len(history.table(TableName("shop", "a_b"))) == 1
    twice = _raw("CREATE TABLE `a b` (id int)", "CREATE TABLE `a%b` (id int)")
    assert twice.table(TableName("shop", "a_b")) == ()


def test_maxwell_tells_its_statement_and_place() -> None:
    change = read_schema_change(maxwell_record("alter table x add a decimal(5,2)", pos=77))
    assert isinstance(change, SchemaChange)
    assert change.position == Position.of(0, 1, 77, 0, 0)
    (told,) = change.statements
    assert isinstance(told, TableAltered)
    assert told.table == TableName("mx", "x")


@pytest.mark.parametrize(
    "payload",
    [{"ts_ms": 1}, {"before": None, "after": None, "source": {}, "op": "c"}, {"type": "insert"}],
)
def test_other_records_tell_of_no_schema(payload: dict[str, Any]) -> None:
    assert read_schema_change(compact(payload)) is None
    assert read_schema_change(None) is None


def test_a_damaged_record_is_a_flaw() -> None:
    damaged = read_schema_change(b'{"ddl": ')
    assert isinstance(damaged, Flaw)
    assert damaged.reason is DeadReason.NOT_JSON
    nameless = json.loads(connect_record("x", changes=[("CREATE", "x", _AS_BORN)]))
    nameless["tableChanges"][0]["id"] = "x"
    assert isinstance(read_schema_change(compact(nameless)), Flaw)


@pytest.mark.parametrize("capture", ["dbplain", "dbsch", "dbflat"])
def test_captured_records_tell_what_the_workload_altered(
    shared: Callable[..., Path], capture: str
) -> None:
    lines = shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl").read_text()
    records = [json.loads(line) for line in lines.splitlines()]
    history = history_of(_changes(r["value"].encode() for r in records if r["topic"] == capture))
    versions = history.table(TableName("shop", "customers"))
    assert [dict(version.renamed) for version in versions if version.renamed] == [
        {"small_unsigned": "small_u"}
    ]
    assert [version.added for version in versions if version.added] == [{"phone", "score"}]
    scales = [version.columns["balance"].scale for version in versions if version.columns]
    assert scales == [2, 2, 4, 4, 4, 4]
    assert (history.ordered, history.unread) == (True, 0)
