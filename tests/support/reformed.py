"""Debezium's events with schemas, written as other formats have the same changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from lakesplice.formats.events import SchemaText
from lakesplice.testing.avro_records import frame, write_value
from lakesplice.testing.shop import Event
from tests.support import avro
from tests.support.debezium import compact

_AVRO = {"int32": "int", "int64": "long", "string": "string"}
_MYSQL = {"int32": "int", "int64": "bigint", "string": "varchar(40)"}
_MAXWELL = {"c": "insert", "r": "insert", "u": "update", "d": "delete"}
_CANAL = {"c": "INSERT", "r": "INSERT", "u": "UPDATE", "d": "DELETE", "t": "TRUNCATE"}


class Form(StrEnum):
    """A format of events, as Debezium's converters and transforms have several."""

    SCHEMAS = "with schemas"
    NO_SCHEMAS = "without schemas"
    FLATTENED = "flattened"
    AVRO = "in Avro"
    FLATTENED_AVRO = "flattened in Avro"
    MAXWELL = "Maxwell's"
    CANAL = "Canal's"
    TICDC = "TiCDC's Debezium protocol"

    @property
    def says_types(self) -> bool:
        """Whether its events have the types of columns."""
        return self in (Form.SCHEMAS, Form.AVRO, Form.FLATTENED_AVRO, Form.CANAL)

    @property
    def partitions(self) -> int:
        """How many partitions a topic may have: the records' own order is that of one."""
        return 1 if self is Form.CANAL else 2


class Reformed:
    """Events in one form; its registry has the schemas of those in Avro."""

    def __init__(self, form: Form) -> None:
        writers: dict[Form, Callable[[Event], Event]] = {
            Form.SCHEMAS: lambda event: event,
            Form.NO_SCHEMAS: _bare,
            Form.FLATTENED: _flattened,
            Form.AVRO: self._avro,
            Form.FLATTENED_AVRO: self._flattened_avro,
            Form.MAXWELL: _maxwell,
            Form.CANAL: _canal,
            Form.TICDC: _ticdc,
        }
        self._write = writers[form]
        self._numbers: dict[str, int] = {}

    @property
    def registry(self) -> avro.GivenSchemas:
        """The schemas of what was written so far."""
        return avro.GivenSchemas({at: SchemaText(text) for text, at in self._numbers.items()})

    def event(self, event: Event) -> Event:
        """The event in this form; one that isn't Debezium's with schemas stays as it is."""
        parts = json.loads(event.value or b"{}")
        return self._write(event) if {"schema", "payload"} <= parts.keys() else event

    def _avro(self, event: Event) -> Event:
        value = _parts(event.value)
        types = _avro_types(value["schema"])
        return self._in_avro(event, avro.envelope(types), value["payload"])

    def _flattened_avro(self, event: Event) -> Event:
        value = _parts(event.value)
        types = _avro_types(value["schema"])
        return self._in_avro(event, avro.flattened(types), _row(value["payload"]))

    def _in_avro(self, event: Event, schema: Mapping[str, Any], value: Any) -> Event:
        key = None
        if event.key is not None:
            parts = json.loads(event.key)
            fields = {f["field"]: _AVRO[f["type"]] for f in parts["schema"]["fields"]}
            key = self._framed(avro.record("Key", fields), parts["payload"])
        return event._replace(key=key, value=self._framed(schema, value))

    def _framed(self, schema: Mapping[str, Any], value: Any) -> bytes:
        text = json.dumps(schema)
        number = self._numbers.setdefault(text, len(self._numbers) + 1)
        return frame(number, write_value(avro.node(SchemaText(text)), value))


def _parts(record: bytes | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record or b"{}")
    return found


def _fields(schema: Mapping[str, Any]) -> dict[str, str]:
    """The columns' types, by the schema of an envelope."""
    (image,) = (one for one in schema["fields"] if one["field"] == "after")
    return {field["field"]: field["type"] for field in image["fields"]}


def _avro_types(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: ["null", _AVRO[type_]] for name, type_ in _fields(schema).items()}


def _bare(event: Event) -> Event:
    key = event.key and compact(_parts(event.key)["payload"])
    return event._replace(key=key, value=compact(_parts(event.value)["payload"]))


def _row(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What the transform makes of an event, told to keep deletes and to add where it was."""
    op, source = payload["op"], payload["source"]
    image = payload["before"] if op == "d" else payload["after"]
    return {**image, "__deleted": "true" if op == "d" else "false", "__op": op,
            **{f"__source_{name}": source[name] for name in ("file", "pos", "row")}}  # fmt: skip


def _flattened(event: Event) -> Event:
    bare = _bare(event)
    return bare._replace(value=compact(_row(_parts(event.value)["payload"])))


def _of_row(event: Event) -> tuple[str, Mapping[str, Any], dict[str, Any], list[str] | None]:
    """An event's operation, source, image and key."""
    payload = _parts(event.value)["payload"]
    image = payload["before"] if payload["op"] == "d" else payload["after"]
    key = None if event.key is None else [*_parts(event.key)["payload"]]
    return payload["op"], payload["source"], image, key


def _old(event: Event) -> dict[str, Any]:
    """What an update changed, as it was."""
    payload = _parts(event.value)["payload"]
    after = payload["after"]
    return {n: v for n, v in payload["before"].items() if n in after and v != after[n]}


def _maxwell(event: Event) -> Event:
    op, source, image, key = _of_row(event)
    value = {
        "database": source["db"], "table": source["table"], "type": _MAXWELL[op], "ts": 1,
        "position": f"{source['file']}:{source['pos']}", "xid": source["pos"],
        "xoffset": source["row"], "data": image or {},
    }  # fmt: skip
    if key is not None:
        value["primary_key_columns"] = key
    if op == "u":
        value["old"] = _old(event)
    # A table without a key has keys of chance.
    said = {"database": source["db"], "table": source["table"], "_uuid": str(source["pos"])}
    return event._replace(key=compact(said), value=compact(value))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _canal(event: Event) -> Event:
    op, source, image, key = _of_row(event)
    types = _fields(_parts(event.value)["schema"])
    old = [{n: _text(v) for n, v in _old(event).items()}] if op == "u" else None
    value = {
        "database": source["db"], "table": source["table"], "es": 1, "ts": 1, "id": source["pos"],
        "isDdl": op == "t", "pkNames": key, "sql": "TRUNCATE TABLE t" if op == "t" else "",
        "type": _CANAL[op], "mysqlType": {name: _MYSQL[type_] for name, type_ in types.items()},
        "old": old, "data": image and [{name: _text(value) for name, value in image.items()}],
    }  # fmt: skip
    return event._replace(key=None, value=compact(value))


def _ticdc(event: Event) -> Event:
    payload = _parts(event.value)["payload"]
    source = {name: payload["source"][name] for name in ("db", "table", "ts_ms")}
    if payload["op"] == "t":
        inner = {"source": source, "ddl": "TRUNCATE TABLE t", "tableChanges": []}
    else:
        inner = {**payload, "source": source}
    source |= {"connector": "TiCDC", "commit_ts": payload["source"]["pos"]}
    key = event.key and compact({"payload": _parts(event.key)["payload"], "schema": {}})
    return event._replace(key=key, value=compact({"payload": inner, "schema": {}}))
