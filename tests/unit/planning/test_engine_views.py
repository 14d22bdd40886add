"""Views for other engines: the SQL is the engine's, and any names are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot
from sqlglot import exp

from lakesplice.errors import UsageError
from lakesplice.model.names import HISTORY_COLUMNS, HISTORY_POSITION, TableName, column_name
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.engine_views.engines import DIALECTS, Engine
from lakesplice.planning.engine_views.view_columns import view_columns
from lakesplice.planning.engine_views.view_sql import (
    EngineView,
    ShownTable,
    engine_view,
    require_distinct_names,
    script,
)

NAMES = ("id", "select", "na me", "a\"b`c'd", "_IS_DELETED", "_x20_", "line\nbreak", "a", "A")


def text(at: int, name: str) -> Column:
    return Column(at, column_name(name), name, ColumnType(Primitive.STRING), "varchar(9)")


def moment(at: int, name: str, source_type: str) -> Column:
    return Column(at, name, name, ColumnType(Primitive.TIMESTAMP), source_type)


SCHEMA = TableSchema(
    (
        *(text(at, name) for at, name in enumerate(NAMES)),
        replace(text(20, "gone"), hidden=True),
        moment(21, "made", "int64:io.debezium.time.MicroTimestamp"),
        moment(22, "sent", "string:io.debezium.time.ZonedTimestamp"),
    ),
    ("id",),
    partitioned_by=(column_name("line\nbreak"), "select"),
)
ODD = ShownTable(TableName("my shop", "Group"), "my_x20_shop/Group", "s3://it's/x", 7, SCHEMA)


def parsed_view(view: EngineView, engine: Engine) -> exp.Create:
    found = sqlglot.parse_one(view.statements[-1], read=engine.value)
    assert isinstance(found, exp.Create)
    assert found.kind == "VIEW"
    return found


@pytest.mark.parametrize("engine", Engine)
def test_an_engine_shows_each_user_column_under_its_own_name(engine: Engine) -> None:
    view = engine_view(engine, ODD)
    found = parsed_view(view, engine)
    assert [part.name for part in found.this.parts] == ["my_x20_shop", "Group"]
    query = found.expression
    stored = [column_name(name) for name in NAMES] + ["made", "sent"]
    # Athena's catalog takes no odd names; elsewhere only those that differ in case stay escaped.
    shown = stored if engine is Engine.ATHENA else [*NAMES, "made", "sent"]
    assert query.named_selects == shown
    assert [one.unalias().name for one in query.selects] == stored
    assert all(one.table == "base" for one in query.find_all(exp.Column))
    assert query.args["where"].this.sql() == 'NOT base."_is_deleted"'
    assert view.partition_columns == (shown[6], "select")


@pytest.mark.parametrize("engine", Engine)
def test_all_that_is_printed_is_sql_of_the_engine(engine: Engine) -> None:
    view = engine_view(engine, ODD)
    dialect = DIALECTS[engine]
    whole = sqlglot.parse(script(engine, [view]), read=engine.value)
    assert len([one for one in whole if one]) == len(dialect.setup) + len(view.statements)
    texts = [node.this for one in whole if one for node in one.find_all(exp.Literal)]
    if engine in (Engine.SPARK, Engine.ATHENA, Engine.DUCKDB):
        assert view.location in texts  # the quote in it ended no literal


def test_comments_say_what_a_reader_has_to_know() -> None:
    printed = script(Engine.TRINO, [engine_view(Engine.TRINO, ODD)])
    lines = printed.splitlines()
    assert lines[3] == (
        "-- my shop.Group, version 7; a filter by its partition columns skips files:"
        " line\\xabreak, select"
    )
    assert (
        '  base."made",  -- DATETIME: a wall clock, stored as if it were UTC\n  base."sent"\n'
    ) in printed


def test_statements_that_register_a_table_are_as_the_engines_document_them() -> None:
    plain = replace(ODD, name=TableName("shop", "items"), path="shop/items", location="s3://l/i")
    registering = {engine: engine_view(engine, plain).statements[1:-1] for engine in Engine}
    assert registering == {
        Engine.SPARK: (
            "CREATE TABLE IF NOT EXISTS `shop`.`items__base`\nUSING DELTA LOCATION 's3a://l/i'",
        ),
        Engine.TRINO: (
            "CALL system.register_table(schema_name => 'shop', table_name => 'items__base',\n"
            "  table_location => 's3://l/i')",
        ),
        Engine.ATHENA: (
            "CREATE EXTERNAL TABLE IF NOT EXISTS `shop`.`items__base`\nLOCATION 's3://l/i/'\n"
            "TBLPROPERTIES ('table_type' = 'DELTA')",
        ),
        Engine.DUCKDB: (),
        Engine.SNOWFLAKE: (
            'CREATE ICEBERG TABLE IF NOT EXISTS "shop"."items__base"\n'
            "  EXTERNAL_VOLUME = 'lakesplice' CATALOG = 'lakesplice'\n"
            "  BASE_LOCATION = 'shop/items' AUTO_REFRESH = TRUE",
        ),
    }


def test_names_that_engines_take_for_one_stay_escaped() -> None:
    # The last one's own name is what the first two would then be called.
    schema = TableSchema(tuple(text(at, name) for at, name in enumerate(("É", "é", "_xc9_", "ü"))))
    shown = [column.name for column in view_columns(schema, odd_names=True)]
    assert shown == ["_xc9_", "_xe9_", "_x5f_xc9_", "ü"]


def test_a_history_view_calls_none_of_its_own_columns_as_the_table_does() -> None:
    shard = Column(20, "__shard_0", "__shard_0", ColumnType(Primitive.STRING), "of-topic:name")
    names = ("id", "__period", "__began", "___ended", *HISTORY_COLUMNS)
    columns = (*(text(at, name) for at, name in enumerate(names)), shard)
    schema = TableSchema(columns, ("__shard_0", "id", HISTORY_POSITION))
    view = engine_view(Engine.DUCKDB, replace(ODD, schema=schema))
    own = {one.alias for one in parsed_view(view, Engine.DUCKDB).find_all(exp.Alias)}
    assert {"____period", "____began", "____shard_0"} <= own
    assert not own & {column.name for column in columns}


def test_rows_of_adopted_files_are_not_taken_for_deleted_ones() -> None:
    view = engine_view(Engine.TRINO, replace(ODD, schema=replace(SCHEMA, adopted=True)))
    assert view.statements[-1].endswith('NOT COALESCE(base."_is_deleted", FALSE)')


def test_a_table_without_columns_has_a_comment_alone() -> None:
    view = engine_view(Engine.SPARK, replace(ODD, schema=TableSchema()))
    assert view.statements == ()
    assert script(Engine.SPARK, [view]).endswith(
        "-- my shop.Group, version 7: no view, since the table has no columns yet\n"
    )


def test_athena_is_not_sent_elsewhere_than_to_s3() -> None:
    with pytest.raises(UsageError, match="--location"):
        engine_view(Engine.ATHENA, replace(ODD, location="/lake/shop/items"))


@pytest.mark.parametrize("other", ["Items", "items__base"])
def test_tables_that_a_catalog_would_take_for_one_are_refused(other: str) -> None:
    require_distinct_names([TableName("shop", "items"), TableName("shop", "item")])
    with pytest.raises(UsageError, match="two of the names"):
        require_distinct_names([TableName("shop", "items"), TableName("shop", other)])
