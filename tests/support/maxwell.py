"""Maxwell's records of rows and of schema changes, as it writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.support.debezium import compact

DATABASE = "shop"
# A table's columns by name, as MySQL has them: `int unsigned`, `decimal`, `datetime(6)`.
Columns = Mapping[str, str]


def definition(table: str, columns: Columns) -> dict[str, Any]:
    """What Maxwell says of a table: its columns without the digits of decimals and bits."""
    return {
        "database": DATABASE, "charset": "utf8mb4", "table": table,
        "columns": [_column(name, type_) for name, type_ in columns.items()],
        "primary-key": ["id"],
    }  # fmt: skip


def _column(name: str, type_: str) -> dict[str, Any]:
    kind = re.sub(r"[ (].*", "", type_)
    column: dict[str, Any] = {"type": kind, "name": name}
    if kind.endswith("int"):
        column["signed"] = "unsigned" not in type_
    elif kind in ("varchar", "char", "text", "longtext"):
        column["charset"] = "binary" if "binary" in type_ else "utf8mb4"
    elif kind in ("blob", "varbinary", "binary"):
        column["charset"] = "binary"
    elif kind in ("datetime", "timestamp", "time"):
        digits = re.search(r"\((\d)\)", type_)
        column["column-length"] = int(digits[1]) if digits else 0
    elif kind in ("enum", "set"):
        column["enum-values"] = re.findall(r"'([^']*)'", type_)
    return column


def schema_record(
    sql: str,
    pos: int | None,
    *,
    table: str = "items",
    after: Columns | None = None,
    before: Columns | None = None,
    became: str | None = None,
) -> bytes:
    """A record of a schema change: `before` and `after` are the columns, `became` the new name."""
    kind = "drop" if after is None else "create" if before is None else "alter"
    record: dict[str, Any] = {"type": f"table-{kind}", "database": DATABASE, "table": table}
    if before is not None:
        record["old"] = definition(table, before)
    if after is not None:
        record["def"] = definition(became or table, after)
    record |= {"ts": 1795248866000, "sql": sql}
    if pos is not None:
        record |= {"position": f"binlog.000003:{pos}", "schema_id": 5}
    return compact(record)


def row_record(
    kind: str,
    data: Mapping[str, object],
    pos: int | None,
    old: Mapping[str, object] | None = None,
    *,
    table: str = "items",
) -> tuple[bytes, bytes]:
    """A record of a row's change, with its key."""
    record: dict[str, Any] = {
        "database": DATABASE, "table": table, "type": kind, "ts": 1795247776, "xid": 5,
    }  # fmt: skip
    if pos is not None:
        record |= {"xoffset": 0, "position": f"binlog.000003:{pos}"}
    record["data"] = data
    if old is not None:
        record["old"] = old
    return compact({"database": DATABASE, "table": table, "pk.id": data["id"]}), compact(record)
