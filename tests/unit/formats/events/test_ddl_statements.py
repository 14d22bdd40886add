"""What statements say about tables' columns; nothing is guessed if they can't be parsed."""

from __future__ import annotations

import pytest

from lakesplice.formats.events.ddl import DefinedColumn, read_statements
from lakesplice.formats.events.ddl.columns import (
    ColumnAdded,
    ColumnChanged,
    ColumnGone,
    ColumnRenamed,
    TableAltered,
    TableDefined,
    TableGone,
    TableLike,
    TableUnread,
)
from lakesplice.model.names import TableName

_T = TableName("shop", "t")


def _type(definition: str) -> tuple[object, ...]:
    (told,) = read_statements(f"CREATE TABLE t (c {definition})", "shop")
    assert isinstance(told, TableDefined)
    (column,) = told.columns
    return column.type, column.length, column.scale


@pytest.mark.parametrize(
    ("written", "type_", "length", "scale"),
    [
        ("int(10) unsigned zerofill", "INT UNSIGNED", 10, None),
        ("INTEGER", "INT", None, None),
        ("bigint(20) unsigned NOT NULL", "BIGINT UNSIGNED", 20, None),
        ("decimal", "DECIMAL", None, None),
        ("numeric(12, 2)", "DECIMAL", 12, 2),
        ("NCHAR VARCHAR(9)", "VARCHAR", 9, None),
        ("BIT(0)", "BIT", None, None),
        ("/*!50000 int */", "INT", None, None),
        ("dec(5)", "DECIMAL", 5, None),
        ("double precision", "DOUBLE", None, None),
        ("real", "DOUBLE", None, None),
        ("float(53)", "FLOAT", 53, None),
        ("bool", "BOOLEAN", None, None),
        ("national character varying(3)", "VARCHAR", 3, None),
        ("char(3) character set latin1", "CHAR", 3, None),
        ("long varchar", "MEDIUMTEXT", None, None),
        ("point not null", "POINT", None, None),
        ("serial", "BIGINT UNSIGNED", None, None),
        ("enum('a,b','c)')", "ENUM", None, None),
        ("binary(16)", "BINARY", 16, None),
        ("datetime(6) default current_timestamp(6) on update now(6)", "DATETIME", 6, None),
    ],
)
def test_a_type_has_its_own_name_and_its_digits(
    written: str, type_: str, length: int | None, scale: int | None
) -> None:
    assert _type(written) == (type_, length, scale)


def test_a_table_is_its_columns_and_its_key() -> None:
    sql = """CREATE TABLE IF NOT EXISTS `we``ird`.`t` (
        `id` int unsigned NOT NULL AUTO_INCREMENT COMMENT 'a ; b -- c',
        `prefs` longtext CHARACTER SET utf8mb4 DEFAULT NULL CHECK (json_valid(`prefs`)),
        `n` decimal(5,2) DEFAULT -1.50, # the last
        `bytes` char(3) CHARACTER SET binary,
        g int GENERATED ALWAYS AS (id + 1) STORED,
        KEY `n` (`n`), CONSTRAINT `pk` PRIMARY KEY USING BTREE (`id`, `n` DESC)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 PARTITION BY HASH (id) PARTITIONS 4"""
    (told,) = read_statements(sql, "shop")
    assert isinstance(told, TableDefined)
    assert told.table == TableName("we`ird", "t")
    assert (told.key, told.unless_there) == (("id", "n"), True)
    assert told.columns == (
        DefinedColumn("id", "INT UNSIGNED", optional=False, default_known=False),
        DefinedColumn("prefs", "LONGTEXT", charset="utf8mb4"),
        DefinedColumn("n", "DECIMAL", 5, 2, default="-1.50"),
        DefinedColumn("bytes", "CHAR", 3, charset="binary"),
        DefinedColumn("g", "INT", default_known=False),
    )


def test_an_alteration_is_its_actions_in_order() -> None:
    sql = (
        "ALTER TABLE t ADD COLUMN a int DEFAULT 5 AFTER b, ADD (c text, INDEX (c)), DROP d,"
        " CHANGE COLUMN e f bigint, MODIFY g decimal(9,3), RENAME COLUMN h TO i,"
        " DROP PRIMARY KEY, ADD UNIQUE KEY u (a), ALTER COLUMN a SET DEFAULT 6,"
        " ENGINE=InnoDB ROW_FORMAT=DYNAMIC, ALGORITHM=INPLACE, LOCK=NONE"
    )
    (told,) = read_statements(sql, "shop")
    assert told == TableAltered(
        _T,
        (
            ColumnAdded(DefinedColumn("a", "INT", default="5")),
            ColumnAdded(DefinedColumn("c", "TEXT")),
            ColumnGone("d"),
            ColumnChanged("e", DefinedColumn("f", "BIGINT")),
            ColumnChanged("g", DefinedColumn("g", "DECIMAL", 9, 3)),
            ColumnRenamed("h", "i"),
        ),
    )
    assert isinstance(told, TableAltered)
    assert told.origins == {"a": None, "c": None, "f": "e", "g": "g", "i": "h"}


def test_names_in_a_statement_are_those_from_before_it() -> None:
    (told,) = read_statements("ALTER TABLE t RENAME COLUMN a TO b, CHANGE b a int", "shop")
    assert isinstance(told, TableAltered)
    assert told.origins == {"b": "a", "a": "b"}


def test_several_tables_are_renamed_in_one_statement() -> None:
    assert read_statements("RENAME TABLE `x` TO `_x_del`, other.y WAIT 5 TO `x`", "shop") == [
        TableAltered(TableName("shop", "x"), (), TableName("shop", "_x_del")),
        TableAltered(TableName("other", "y"), (), TableName("shop", "x")),
    ]
    assert read_statements("ALTER TABLE t RENAME TO u", "shop") == [
        TableAltered(_T, (), TableName("shop", "u"))
    ]


def test_tables_that_a_statement_drops_or_copies_are_named() -> None:
    assert read_statements("DROP TABLE IF EXISTS a.b, t; DROP DATABASE shop", "shop") == [
        TableGone("a", "b"),
        TableGone("shop", "t"),
        TableGone("shop", None),
    ]
    for written in ("CREATE TABLE u LIKE t", "CREATE TABLE u (LIKE t)"):
        assert read_statements(written, "shop") == [TableLike(TableName("shop", "u"), _T)]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE TEMPORARY TABLE t (a int)",
        "CREATE INDEX i ON t (a)",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN ALTER TABLE t ADD x int; END",
        "CREATE DEFINER=`root`@`%` PROCEDURE p() BEGIN SET @x = 1; DROP TABLE t; END",
        "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN DROP TABLE t; RETURN 1; END",
        "ALTER EVENT e DO BEGIN DELETE FROM u; DROP TABLE t; END",
        "TRUNCATE TABLE t",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        "ALTER TABLE t DISABLE KEYS",
        "ALTER TABLE t ORDER BY a, b DESC, `c`",
        "ALTER TABLE t ADD INDEX (a), COMMENT = 'it''s /*!50000 ADD x int */'",
        "ALTER TABLE t DROP FOREIGN KEY f, DROP CONSTRAINT c",
        "/*!40000 ALTER TABLE `t` ENABLE KEYS */",
        "GRANT ALL ON *.* TO u",
        "",
    ],
)
def test_statements_that_leave_columns_alone_say_nothing(sql: str) -> None:
    assert not read_statements(sql, "shop")


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("CREATE TABLE t AS SELECT 1 AS a", _T),
        ("CREATE TABLE t (a int) SELECT * FROM u", _T),
        ("CREATE TABLE t (a char(3)) CHARSET=binary", _T),
        ("ALTER TABLE t CONVERT TO CHARACTER SET binary", _T),
        ("ALTER TABLE t FROBNICATE a", _T),
        ("ALTER TABLE t ADD a", _T),
        ("ALTER TABLE t ADD a 'int'", _T),
        ("ALTER TABLE t ADD a (5)", _T),
        ("ALTER TABLE t ADD (a int", _T),
        ("ALTER TABLE t ADD a decimal(1,2,3)", _T),
        ("ALTER TABLE 'unfinished", None),
        ("SET STATEMENT max_statement_time=1", None),
    ],
)
def test_a_statement_that_cannot_be_parsed_is_reported_for_its_table(
    sql: str, table: TableName | None
) -> None:
    (told,) = read_statements(sql, "shop")
    assert isinstance(told, TableUnread)
    assert told.table == table
    assert told.reason


def test_settings_for_one_statement_leave_it_as_it_is() -> None:
    plain = "ALTER TABLE t ADD a int"
    assert read_statements(f"SET STATEMENT max_statement_time=1 FOR {plain}", "shop") == (
        read_statements(plain, "shop")
    )


def test_a_table_may_be_called_as_a_program_is() -> None:
    (told,) = read_statements("CREATE TABLE event (a int)", "shop")
    assert isinstance(told, TableDefined)


@pytest.mark.parametrize("written", ["'utf8mb4'", '"utf8mb4"', "utf8mb4", "`utf8mb4`"])
def test_a_character_set_may_be_quoted(written: str) -> None:
    (told,) = read_statements(f"CREATE TABLE t (c char(3) CHARACTER SET {written})", "shop")
    assert isinstance(told, TableDefined)
    assert told.columns == (DefinedColumn("c", "CHAR", 3, charset="utf8mb4"),)


@pytest.mark.parametrize(
    ("written", "default", "told"),
    [
        ("int DEFAULT 5", "5", True),
        ("bool NOT NULL DEFAULT TRUE", "1", True),
        ("bool NOT NULL DEFAULT false", "0", True),
        ("int DEFAULT NULL", None, True),
        ("int NOT NULL", None, True),
        ("int NOT NULL DEFAULT (1 + 1)", None, False),
        ("bit(4) NOT NULL DEFAULT b'1010'", None, False),
        ("char(36) NOT NULL DEFAULT uuid()", None, False),
        ("datetime NOT NULL DEFAULT CURRENT_TIMESTAMP", None, False),
        ("int GENERATED ALWAYS AS (a + 1) STORED NOT NULL", None, False),
        ("int AS (a + 1) PERSISTENT", None, False),
        ("int NOT NULL AUTO_INCREMENT", None, False),
    ],
)
def test_a_default_is_known_if_it_is_one_value(
    written: str, default: str | None, told: bool
) -> None:
    (found,) = read_statements(f"ALTER TABLE t ADD c {written}", "shop")
    assert isinstance(found, TableAltered)
    (action,) = found.actions
    assert isinstance(action, ColumnAdded)
    assert (action.column.default, action.column.default_known) == (default, told)


def test_columns_may_have_names_that_are_words_elsewhere() -> None:
    (made,) = read_statements(
        "CREATE TABLE t (t.period int, system int, PERIOD FOR SYSTEM_TIME (a, b))", "shop"
    )
    assert isinstance(made, TableDefined)
    assert [column.name for column in made.columns] == ["period", "system"]
    assert read_statements("ALTER TABLE t ADD period int, DROP system", "shop") == [
        TableAltered(_T, (ColumnAdded(DefinedColumn("period", "INT")), ColumnGone("system")))
    ]
    assert not read_statements("ALTER TABLE t DROP SYSTEM VERSIONING, DROP PERIOD FOR p", "shop")


@pytest.mark.parametrize("opening", ["/*!50000 ", "/*!", "/*M!100100 "])
def test_statements_in_executable_comments_are_read(opening: str) -> None:
    plain = read_statements("ALTER TABLE t ADD COLUMN c int", "shop")
    assert plain
    assert read_statements(f"{opening}ALTER TABLE t ADD COLUMN c int */", "shop") == plain
    assert read_statements(f"ALTER TABLE t {opening}ADD COLUMN c int*/", "shop") == plain


def test_names_behind_order_by_are_no_actions_and_what_follows_them_is() -> None:
    (told,) = read_statements("ALTER TABLE t ORDER BY a, b, ADD COLUMN c int", "shop")
    assert isinstance(told, TableAltered)
    assert [type(action) for action in told.actions] == [ColumnAdded]
