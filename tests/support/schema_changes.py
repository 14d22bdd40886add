"""Records of schema changes, as connectors write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.debezium import compact

# What, the table, its columns then, and its name before.
Change = (
    tuple[str, str, Sequence[dict[str, Any]] | None]
    | tuple[str, str, Sequence[dict[str, Any]] | None, str]
)


def column(
    name: str,
    type_: str,
    length: int | None = None,
    scale: int | None = None,
    *,
    optional: bool = True,
    default: str | None = None,
) -> dict[str, Any]:
    """A column as Debezium describes it."""
    return {
        "name": name, "jdbcType": 4, "nativeType": None, "typeName": type_,
        "typeExpression": type_, "charsetName": None, "length": length, "scale": scale,
        "position": 1, "optional": optional, "autoIncremented": False, "generated": False,
        "comment": None, "defaultValueExpression": default, "enumValues": None,
    }  # fmt: skip


def connect_record(
    ddl: str,
    *,
    file: str = "binlog.000003",
    pos: int = 4,
    database: str = "shop",
    changes: Sequence[Change] | None = (),
    key: Sequence[str] = ("id",),
    **source: object,
) -> bytes:
    """A record of Debezium's schema-change topic; `changes` None: it has no `tableChanges`;
    `source` overrides members of the record's own.
    """
    payload: dict[str, Any] = {
        "source": {
            "version": "3.5.0.Final", "connector": "mariadb", "name": "test", "snapshot": "false",
            "db": database, "table": None, "gtid": None, "file": file, "pos": pos, "row": 0,
            **source,
        },
        "ts_ms": 1795247776558, "databaseName": database, "schemaName": None, "ddl": ddl,
    }  # fmt: skip
    if changes is not None:
        payload["tableChanges"] = [_change(database, key, *change) for change in changes]
    return compact(payload)


def _change(
    database: str,
    key: Sequence[str],
    kind: str,
    table: str,
    columns: Sequence[dict[str, Any]] | None,
    previous: str | None = None,
) -> dict[str, Any]:
    told: dict[str, Any] = {"type": kind, "id": f'"{database}"."{table}"', "table": None}
    if columns is not None:
        told["table"] = {"primaryKeyColumnNames": list(key), "columns": list(columns)}
    if previous is not None:
        told["previousId"] = f'"{database}"."{previous}"'
    return told


def maxwell_record(sql: str, *, pos: int) -> bytes:
    """A record of a schema change of the table `mx.x`, or of `mx`, as Maxwell writes it."""
    of_database = sql.startswith("DROP DATABASE")
    of = {"type": "database-drop"} if of_database else {"type": "table-alter", "table": "x"}
    said = {"sql": sql, "position": f"binlog.000001:{pos}", "schema_id": 5}
    tables: dict[str, Any] = {} if of_database else {"old": {}, "def": {}}
    return compact({**of, "database": "mx", **tables, "ts": 1795248866000, **said})
