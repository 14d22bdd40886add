"""The statements that register a table in an engine and show it as a view.

The table is registered as `<table>__base`, the view is `<database>.<table>`. Databases and tables
have the names of their folders, which every catalog takes. Names and texts are quoted for each
dialect by sqlglot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from lakesplice.errors import UsageError
from lakesplice.model.names import IS_DELETED, TableName
from lakesplice.model.schema import TableSchema
from lakesplice.planning.engine_views.engines import DIALECTS, Engine
from lakesplice.planning.engine_views.history_sql import history_query
from lakesplice.planning.engine_views.view_columns import ViewColumn, view_columns

BASE_SUFFIX = "__base"
_BASE = "base"
_WALL_CLOCK = "DATETIME: a wall clock, stored as if it were UTC"


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table to be shown: `path` is its folder in the lake, `location` its address."""

    name: TableName
    path: str
    location: str
    version: int
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class EngineView:
    """The SQL for a table: `statements` register it, and the last one creates the view.

    `notes` are about the table. A table without columns has no view and no statements.
    """

    table: str
    columns: tuple[ViewColumn, ...]
    partition_columns: tuple[str, ...]
    location: str
    notes: tuple[str, ...]
    statements: tuple[str, ...]


def engine_view(engine: Engine, table: ShownTable) -> EngineView:
    """Return the view of a table; `UsageError` if the engine can't read at its location."""
    columns = view_columns(table.schema, odd_names=DIALECTS[engine].odd_names)
    names = {column.stored_name: column.name for column in columns}
    partitions = tuple(names[stored] for stored in table.schema.partitioned_by)
    location = _location(engine, table.location)
    return EngineView(
        str(table.name),
        columns,
        partitions,
        location,
        _notes(table, columns, partitions),
        _statements(engine, table, location, columns) if columns else (),
    )


def require_distinct_names(tables: Iterable[TableName]) -> None:
    """Check that catalogs can distinguish the views and registered tables; `UsageError`
    otherwise.
    """
    met: dict[str, TableName] = {}
    for name in tables:
        for taken in (name.path.lower(), f"{name.path}{BASE_SUFFIX}".lower()):
            other = met.setdefault(taken, name)
            if other != name:
                raise UsageError(
                    "catalogs would take two of the names for one; give each table by itself, and"
                    " rename one in the SQL",
                    one=str(other),
                    other=str(name),
                )


def script(engine: Engine, views: Iterable[EngineView]) -> str:
    """Return everything as text: first the setup, then each table with its notes as comments."""
    dialect = DIALECTS[engine]
    parts = [_part(dialect.notes, dialect.setup), *(_part(v.notes, v.statements) for v in views)]
    return "\n".join(part for part in parts if part)


def _part(notes: Iterable[str], statements: Iterable[str]) -> str:
    comments = "".join(f"-- {note}\n" for note in notes)
    return comments + "".join(f"{statement};\n" for statement in statements)


def _location(engine: Engine, location: str) -> str:
    scheme, mark, rest = location.partition("://")
    in_s3 = bool(mark) and scheme in ("s3", "s3a")
    if engine is Engine.SPARK and in_s3:
        return f"s3a://{rest}"  # the only name that Hadoop's own client knows
    if engine is not Engine.ATHENA:
        return location
    if not in_s3:
        raise UsageError(
            "Athena reads tables in S3 only; give the lake's address there with --location",
            location=location,
        )
    return f"s3://{rest}/"


def _notes(
    table: ShownTable, columns: tuple[ViewColumn, ...], partitions: tuple[str, ...]
) -> tuple[str, ...]:
    said = f"{table.name}, version {table.version}"
    if not columns:
        return (f"{_on_one_line(said)}: no view, since the table has no columns yet",)
    if not partitions:
        return (_on_one_line(said),)
    by = ", ".join(partitions)
    return (_on_one_line(f"{said}; a filter by its partition columns skips files: {by}"),)


def _on_one_line(text: str) -> str:
    """Names may contain line breaks, which would end a comment."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):x}" for char in text)


def _statements(
    engine: Engine, table: ShownTable, location: str, columns: tuple[ViewColumn, ...]
) -> tuple[str, ...]:
    dialect = DIALECTS[engine]
    database, name = table.name.path.split("/")
    base = qualified(database, f"{name}{BASE_SUFFIX}", dialect.tables)
    source = qualified(database, f"{name}{BASE_SUFFIX}", dialect.queries)
    at = literal(location, dialect.tables)
    registering: tuple[str, ...]
    match engine:
        case Engine.SPARK:
            registering = (f"CREATE TABLE IF NOT EXISTS {base}\nUSING DELTA LOCATION {at}",)
        case Engine.TRINO:
            names = f"schema_name => {literal(database, dialect.tables)}, table_name => "
            names += literal(f"{name}{BASE_SUFFIX}", dialect.tables)
            registering = (f"CALL system.register_table({names},\n  table_location => {at})",)
        case Engine.ATHENA:
            kind = "TBLPROPERTIES ('table_type' = 'DELTA')"
            registering = (f"CREATE EXTERNAL TABLE IF NOT EXISTS {base}\nLOCATION {at}\n{kind}",)
        case Engine.SNOWFLAKE:
            registering = (
                f"CREATE ICEBERG TABLE IF NOT EXISTS {base}\n"
                "  EXTERNAL_VOLUME = 'lakesplice' CATALOG = 'lakesplice'\n"
                f"  BASE_LOCATION = {literal(table.path, dialect.tables)} AUTO_REFRESH = TRUE",
            )
        case Engine.DUCKDB:
            registering, source = (), f"delta_scan({at})"
    schema = f"CREATE SCHEMA IF NOT EXISTS {quoted(database, dialect.tables)}"
    view = (
        f"CREATE OR REPLACE VIEW {qualified(database, name, dialect.queries)} AS\n"
        f"{_query(columns, source, dialect.queries, table.schema)}"
    )
    return (schema, *registering, view)


def _query(columns: tuple[ViewColumn, ...], source: str, dialect: str, schema: TableSchema) -> str:
    if schema.keeps_versions:
        selected = [_selected(column, dialect) for column in columns]
        names = [column.name for column in columns]
        return history_query(selected, names, schema, source, dialect)
    last = len(columns) - 1
    listed = "".join(
        f"  {_selected(column, dialect)}{',' if at < last else ''}"
        f"{f'  -- {_WALL_CLOCK}' if column.wall_clock else ''}\n"
        for at, column in enumerate(columns)
    )
    # Qualified: a user's column may have the name of the system column in the view.
    deleted = f"{_BASE}.{quoted(IS_DELETED, dialect)}"
    # Files of other writers lack the column.
    deleted = f"COALESCE({deleted}, FALSE)" if schema.adopted else deleted
    return f"SELECT\n{listed}FROM {source} AS {_BASE}\nWHERE NOT {deleted}"


def _selected(column: ViewColumn, dialect: str) -> str:
    stored = f"{_BASE}.{quoted(column.stored_name, dialect)}"
    if column.name == column.stored_name:
        return stored
    return f"{stored} AS {quoted(column.name, dialect)}"


def quoted(name: str, dialect: str) -> str:
    """Return a name in a dialect's quotes, whatever characters it has."""
    return exp.to_identifier(name, quoted=True).sql(dialect)


def qualified(database: str, name: str, dialect: str) -> str:
    """Return the quoted name of a table or view in its database."""
    return f"{quoted(database, dialect)}.{quoted(name, dialect)}"


def literal(text: str, dialect: str) -> str:
    """Return a text as a dialect's literal."""
    return exp.Literal.string(text).sql(dialect)
