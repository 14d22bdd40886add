"""Parses SQL statements as edits of one table: UPDATE, DELETE, MERGE and INSERT.

    UPDATE db.table [alias] SET a = …, … [WHERE …]
    DELETE FROM db.table [alias] [WHERE …]
    MERGE INTO db.table [alias] USING source [alias] ON … WHEN …
    INSERT INTO db.table [(a, …)] VALUES (…), … | SELECT * FROM source

A source is a Parquet file ('rows.parquet') or another table (db.other). The grammar is Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.planning.by_hand.merge_clauses import SOURCE, TARGET, Action, Clause, Rows
from lakesplice.planning.filtering.conditions import TEXT_MAX
from lakesplice.planning.filtering.parsed_parts import require_read_parts


@dataclass(frozen=True)
class SourceRows:
    """The source of a statement's rows: a Parquet file, or a table of the lake."""

    file: str | None = None
    table: TableName | None = None


@dataclass(frozen=True)
class Update:
    """UPDATE, with values as SQL over the row."""

    table: TableName
    set: Mapping[str, str]
    where: str | None


@dataclass(frozen=True)
class Delete:
    """DELETE; without `where` all rows."""

    table: TableName
    where: str | None


@dataclass(frozen=True)
class Merge:
    """MERGE; `on` has for each column of the table the source's that it is compared with."""

    table: TableName
    source: SourceRows
    on: Mapping[str, str]
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Insert:
    """INSERT of values, each as SQL, or of a source's rows; `columns` are those of the values, None
    if they aren't named.
    """

    table: TableName
    columns: tuple[str, ...] | None
    values: tuple[tuple[str, ...], ...] = ()
    source: SourceRows | None = None


Statement = Update | Delete | Merge | Insert


def parsed_statement(text: str) -> Statement:
    """Parse a statement; raises `UsageError` if it isn't one of these."""
    try:
        found = sqlglot.parse(text[: TEXT_MAX + 1], read="spark")
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        line = str(error).partition("\n")[0]
        raise UsageError("this isn't a SQL statement", cause=line) from None
    node = found[0] if len(found) == 1 and len(text) <= TEXT_MAX else None
    if node is not None:
        require_read_parts(node, text)
    if isinstance(node, exp.Update):
        return _update(node)
    if isinstance(node, exp.Delete):
        table, names = _table(node.this)
        return Delete(table, _where(node, names))
    if isinstance(node, exp.Merge):
        return _merge(node)
    if isinstance(node, exp.Insert) and not node.args.get("overwrite"):
        return _insert(node)
    raise UsageError("give one statement: UPDATE, DELETE, MERGE or INSERT INTO")


def _update(node: exp.Update) -> Update:
    table, names = _table(node.this)
    return Update(table, _set(node.expressions, names), _where(node, names))


def _insert(node: exp.Insert) -> Insert:
    into, columns = node.this, None
    if isinstance(into, exp.Schema):
        into, columns = into.this, tuple(one.name for one in into.expressions)
    table, _ = _table(into)
    given = node.expression
    if isinstance(given, exp.Values):
        rows = [
            one.expressions if isinstance(one, exp.Tuple) else [one] for one in given.expressions
        ]
        return Insert(table, columns, tuple(tuple(map(_sql, row)) for row in rows))
    if isinstance(given, exp.Select) and columns is None and _is_whole(given):
        return Insert(table, None, source=_source(given.args["from_"].this)[0])
    raise UsageError("INSERT takes VALUES, or SELECT * FROM a file or a table")


def _is_whole(select: exp.Select) -> bool:
    parts = {name for name, value in select.args.items() if value}
    return parts == {"expressions", "from_"} and [type(e) for e in select.expressions] == [exp.Star]


def _merge(node: exp.Merge) -> Merge:
    table, target = _table(node.this)
    source, names = _source(node.args["using"])
    sides = dict.fromkeys(target, TARGET) | dict.fromkeys(names, SOURCE)
    if target.keys() & names:
        raise UsageError("give the table and the source of a MERGE different names")
    clauses = tuple(_clause(one, sides) for one in node.args["whens"].expressions)
    return Merge(table, source, _compared(node.args["on"], sides), clauses)


def _compared(on: exp.Expr, sides: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in on.flatten() if isinstance(on, exp.And) else [on]:
        pair = [one.this, one.expression] if isinstance(one, exp.EQ) else []
        named = {sides.get(c.table, ""): c.name for c in pair if isinstance(c, exp.Column)}
        if named.keys() != {TARGET, SOURCE}:
            raise UsageError(
                "ON must compare the table's key with columns of the source, by =; put other"
                " conditions into the WHEN clauses",
                part=_sql(one),
            )
        found[named[TARGET]] = named[SOURCE]
    return found


def _clause(node: exp.When, sides: Mapping[str, str]) -> Clause:
    rows = Rows.MATCHED
    if not node.args["matched"]:
        rows = Rows.NOT_MATCHED_BY_SOURCE if node.args.get("source") else Rows.NOT_MATCHED
    condition, then = node.args.get("condition"), node.args["then"]
    where = None if condition is None else _sql(condition, sides)
    if isinstance(then, exp.Update) and not then.args.get("where"):
        star = any(isinstance(one, exp.Star) for one in then.expressions)
        values = None if star else _set(then.expressions, sides)
        return Clause(rows, Action.UPDATE, where, values)
    if isinstance(then, exp.Insert):
        if isinstance(then.this, exp.Star):
            return Clause(rows, Action.INSERT, where)
        columns = [one.name for one in then.this.expressions] if then.this else []
        given = [_sql(one, sides) for one in then.expression.expressions]
        if not columns or len(columns) != len(given):
            raise UsageError("INSERT needs its columns, and a value for each", part=_sql(then))
        return Clause(rows, Action.INSERT, where, dict(zip(columns, given, strict=True)))
    if then.name.upper() == "DELETE":
        return Clause(rows, Action.DELETE, where)
    raise UsageError("WHEN … THEN takes UPDATE, INSERT or DELETE", part=_sql(node))


def _set(nodes: Sequence[exp.Expr], names: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise UsageError("SET gives columns values", part=_sql(node))
        if node.this.table and names.get(node.this.table) not in ("", TARGET):
            raise UsageError("SET gives values only to the table's columns", part=_sql(node))
        if node.this.name in found:
            raise UsageError("SET gives a column two values", column=node.this.name)
        found[node.this.name] = _sql(node.expression, names)
    return found


def _where(node: exp.Expr, names: Mapping[str, str]) -> str | None:
    where = node.args.get("where")
    return None if where is None else _sql(where.this, names)


def _table(node: exp.Expr) -> tuple[TableName, dict[str, str]]:
    """The table, and the names that the statement may use for it."""
    if not isinstance(node, exp.Table) or not node.db or node.catalog or not node.name:
        raise UsageError("name the table as database.table", part=_sql(node))
    return TableName(node.db, node.name), {node.alias or node.name: ""}


def _source(node: exp.Expr) -> tuple[SourceRows, set[str]]:
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.catalog:
        names = {node.alias or node.name}
        if node.db and node.db.lower() != "parquet":
            return SourceRows(table=TableName(node.db, node.name)), names
        if node.this.args.get("quoted"):
            return SourceRows(file=node.name), names
    raise UsageError(
        "a source is a Parquet file, 'rows.parquet', or a table, database.table", part=_sql(node)
    )


def _sql(node: exp.Expr, names: Mapping[str, str] | None = None) -> str:
    """The SQL of a part of a statement, with the given prefixes in place of tables' names."""

    def renamed(one: exp.Expr) -> exp.Expr:
        if not isinstance(one, exp.Column) or not one.table or names is None:
            return one
        if one.table not in names:
            raise UsageError("no table has this name here", part=one.sql("spark"))
        prefix = names[one.table].rstrip(".")
        table = exp.to_identifier(prefix) if prefix else None
        return exp.Column(this=one.this, table=table)

    return str(node.transform(renamed).sql("spark"))
