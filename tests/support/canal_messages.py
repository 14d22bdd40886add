"""Canal's flat messages and TiCDC's, as their documents describe them, and what they decode to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, Decoded, declare
from tests.support.debezium import TABLE, Record, compact, decode_all

Json = dict[str, Any]
TYPES = {"id": "int(11)", "name": "varchar(40)", "price": "decimal(8,2)"}
COMMIT_TS = 429918007904436226


def row(key: int, **changed: object) -> Json:
    return {"id": str(key), "name": f"item {key}", "price": "1.50", **changed}


def message(kind: str, data: Any, old: Any = None, **more: Any) -> Record:
    """Members in Canal's order, which is the alphabet's."""
    types = {**TYPES, **more.pop("types", {})}
    members = {
        "data": data, "database": "shop", "es": 1589373560000, "id": 9, "isDdl": False,
        "mysqlType": types, "old": old, "pkNames": ["id"], "sql": "",
        "sqlType": dict.fromkeys(types, 4), "table": "items", "ts": 1589373560798, "type": kind,
    }  # fmt: skip
    return None, compact({**members, **more})


def ticdc(kind: str, data: Any, old: Any = None, **more: Any) -> Record:
    """Members in TiCDC's order, with its extension."""
    _, value = message(kind, data, old, **more)
    members = json.loads(value or b"")
    order = ("id", "database", "table", "pkNames", "isDdl", "type", "es", "ts", "sql", "sqlType",
             "mysqlType", "old", "data")  # fmt: skip
    stamp = members.pop("_tidb", {"commitTs": COMMIT_TS})
    return None, compact({**{name: members[name] for name in order}, "_tidb": stamp})


def decode(*records: Record, **declared: str) -> Decoded:
    context = DecodeContext(TABLE, declare(declared) if declared else None)
    return decode_all(records, context)


WRITERS = pytest.mark.parametrize("write", [message, ticdc], ids=["canal", "ticdc"])
