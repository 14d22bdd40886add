"""Events of a source table whose columns are whatever its ALTERs made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakesplice.testing.shop import Event

TOPIC = "t.s.t"
DEFAULTS = {"c": {"default": 5}, "d": {"default": 7}, "e": {"default": 9}}


def event(
    columns: Mapping[str, str],
    pos: int,
    after: dict[str, Any] | None,
    before: dict[str, Any] | None = None,
    topic: str = TOPIC,
) -> Event:
    """A Debezium event of a source table with these columns, by Connect type."""
    _, database, table = topic.rsplit(".", 2)
    fields = [
        {"field": name, "type": kind, "optional": True, **DEFAULTS.get(name, {})}
        for name, kind in columns.items()
    ]
    image = {"type": "struct", "fields": fields, "optional": True}
    strings = [{"field": name, "type": "string"} for name in ("db", "table", "file")]
    numbers = [{"field": name, "type": "int64"} for name in ("pos", "row", "ts_ms")]
    schema = {
        "type": "struct",
        "fields": [
            {**image, "field": "before"},
            {**image, "field": "after"},
            {"type": "struct", "fields": strings + numbers, "field": "source"},
            {"type": "string", "field": "op"},
        ],
    }
    source = {
        "db": database,
        "table": table,
        "file": "bin.000001",
        "pos": pos,
        "row": 0,
        "ts_ms": 1000,
    }
    op = "d" if after is None else "c" if before is None else "u"
    row = after or before or {}
    payload = {"before": before, "after": after, "source": source, "op": op}
    key_type = {"type": "struct", "fields": [{"field": "id", "type": columns["id"]}]}
    key = {"schema": key_type, "payload": {"id": row["id"]}}
    value = {"schema": schema, "payload": payload}
    return Event(topic, json.dumps(key).encode(), json.dumps(value).encode(), (), 1000)
