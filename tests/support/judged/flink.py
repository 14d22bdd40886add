"""The forms of Flink's and Flink CDC's fixtures."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.support.avro import CONTEXT as REGISTERED
from tests.support.avro import avro_record
from tests.support.canal_messages import message
from tests.support.canal_messages import row as canal_row
from tests.support.debezium import Flavour, Record, compact, image, payload
from tests.support.judged.case import Case, bare, read, refused

_PLAIN, _SCHEMAS = Flavour(schemas=False), Flavour(schemas=True)
_TYPES = {"id": "long", "name": "string", "price": "decimal(8,2)", "stock": "integer"}
_ROWS: list[dict[str, Any]] = [{"id": 1, "name": "item 1"}, {"id": 2, "stock": 2}]


def _of_postgres(op: str, before: Any, after: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "snapshot": "false", "db": "shop", "schema": "s",
              "table": "items", "txId": 6, "lsn": 34, "xmin": None}  # fmt: skip
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}


def _sunk(after: Mapping[str, Any], key: Any = None, schema: Any = None) -> Record:
    """As Flink CDC's sink writes a row of Debezium's form."""
    event = {"before": None, "after": after, "op": "c"}
    event["source"] = {"db": "shop", "table": "items"}
    value = event if schema is None else {"schema": schema, "payload": event}
    return (key if isinstance(key, bytes) else key and compact(key)), compact(value)


def _half_a_schema() -> dict[str, Any]:
    fields = [{"type": "int32", "optional": False, "field": "id"}]
    images = [
        {"type": "struct", "fields": fields, "optional": True, "field": name}
        for name in ("before", "after")
    ]
    return {"type": "struct", "fields": images, "optional": False}


def _as_canal(after: Mapping[str, Any]) -> dict[str, Any]:
    return {"old": None, "data": [after], "type": "INSERT", "database": "shop", "table": "items",
            "pkNames": ["id"]}  # fmt: skip


def _with_float32() -> Record:
    key, value = _SCHEMAS.created(1)
    return key, (value or b"").replace(b'"int32"', b'"float32"')


_SNAPSHOT = [_PLAIN.record(payload("c", None, image(at), snapshot="true"), at) for at in (1, 2)]
_CREATED = payload("c", None, image(1))
_CUT = {name: _CREATED[name] for name in ("before", "after", "op")}
_TEMPORAL = {"on": "2024-02-29", "at": "2024-02-29 12:00:00", "t": "12:00:00", "price": 7.25}
_KEY = {"TableId": "shop.items", "id": 1}

CASES: dict[str, list[Case]] = {
    "Flink, `canal-data.txt`": [
        read(
            [{"id": 1}, {"id": 2}, {"name": "new"}],
            message("INSERT", [canal_row(1), canal_row(2)]),
            message("UPDATE", [canal_row(2, name="new")], [{"name": "item 2"}]),
            message("DELETE", [canal_row(1)]),
            message("CREATE", None, isDdl=True, mysqlType=None, pkNames=None),
        )
    ],
    "Flink, `canal-data-filter-table.txt`": [
        Case([message("INSERT", [canal_row(1), {**canal_row(2), "id": "B2"}])])
    ],
    "Flink, `canal-data-with-init.txt`": [
        Case([message("INIT", [canal_row(1)]), message("INIT", [{**canal_row(2), "more": "x"}])])
    ],
    "Flink, `debezium-data-schema-*.txt`": [
        Case(_SNAPSHOT, _ROWS, _TYPES),
        Case([_SCHEMAS.created(1), _SCHEMAS.created(2)], _ROWS),
    ],
    "Flink, `debezium-postgres-data-schema-*.txt`": [
        read(
            [{"id": 1}, {"id": 1, "name": "b"}],
            *bare(
                _of_postgres("r", None, {"id": 1, "name": "a"}),
                _of_postgres("u", {"id": 1, "name": "a"}, {"id": 1, "name": "b"}),
                _of_postgres("d", {"id": 1, "name": "b"}, None),
            ),
            id="int",
            name="text",
        )
    ],
    "Flink, `debezium-postgres-data-replica-identity.txt`": [
        refused(_of_postgres("u", None, {"id": 1}), _of_postgres("d", None, None), id="int")
    ],
    "Flink, `maxwell-data.txt`": [
        read(
            [{"id": 1, "name": "a"}, {"name": "b"}],
            *bare(
                *(
                    {
                        "database": "shop",
                        "table": "items",
                        "type": kind,
                        "ts": 1,
                        "xid": 5,
                        "commit": True,
                        "data": {"id": 1, "name": name},
                        "primary_key_columns": ["id"],
                        **more,
                    }
                    for kind, name, more in (
                        ("insert", "a", {}),
                        ("update", "b", {"old": {"name": "a"}}),
                        ("delete", "b", {}),
                    )
                )
            ),
            id="int",
            name="text",
        )
    ],
    "Flink, `ogg-data.txt`": [
        refused({"table": "S.ITEMS", "pos": "07", "after": {"id": 1}, "op_type": "I"}, id="int")
    ],
    "Flink, `debezium-avro-*.avro`": [
        Case([avro_record(_CREATED, 1)], [{"id": 1, "stock": 1}], schemas=REGISTERED.schemas)
    ],
    "Flink, `*SerDeSchemaTest.java`, what its own sinks write": [
        refused({"data": [{"id": 1}], "type": "INSERT"}, id="int"),
        refused({"before": None, "after": {"id": 1}, "op": "c"}, id="int"),
        refused({"data": {"id": 1}, "type": "insert"}, id="int"),
    ],
    "Flink CDC, `debezium-data-schema-exclude.json`": [refused(_CUT, **_TYPES)],
    "Flink CDC, `debezium-data-schema-exclude-with-numeric-decimal.json`": [
        refused({**_CUT, "after": image(1, price=1.25)}, **_TYPES)
    ],
    "Flink CDC, `debezium-data-schema-include.json`": [Case([_with_float32()])],
    "Flink CDC, `mysqlToKafka/debezium-json.txt`": [
        read([{"id": 1, "name": "a"}], _sunk({"id": 1, "name": "a"}, _KEY), id="int", name="text")
    ],
    "Flink CDC, `mysqlToKafka/debezium-json-with-schema.txt`": [
        Case([_sunk({"id": 1}, _KEY, _half_a_schema())])
    ],
    "Flink CDC, `mysqlToKafka/canal-json.txt`": [refused(_as_canal({"id": 1}), id="int")],
    "Flink CDC, `DebeziumJsonSerializationSchemaTest.java`": [
        read(
            [{**_TEMPORAL, "price": Decimal("7.25")}],
            _sunk(_TEMPORAL),
            on="string",
            at="string",
            t="string",
            price="decimal_number(6,2)",
        )
    ],
    "Flink CDC, `CanalJsonSerializationSchemaTest.java`": [refused(_as_canal({"id": "1"}))],
    "Flink CDC, `KafkaDataSinkITCase.java`": [
        read([{"id": 1}], _sunk({"id": 1}, _KEY), id="int"),
    ],
    "Flink CDC, `KafkaDataSinkITCase.java`, keys as CSV": [
        Case([_sunk({"id": 1}, b'"shop.items",1')], declared={"id": "int"})
    ],
    "Flink CDC, `KafkaDataSinkITCase.java`, arrays, maps and rows": [
        Case([_sunk({"id": 1, "list": ["a"]})], declared={"id": "int", "list": "json"})
    ],
}
