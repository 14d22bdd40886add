"""The forms of TiCDC's fixtures."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.property.test_format_laws import ticdc_debezium
from tests.support.canal_messages import row, ticdc
from tests.support.debezium import Flavour, Record, compact, image, payload
from tests.support.judged.case import Case, read
from tests.support.ticdc_avro import decimal, event, record, schemas
from tests.support.ticdc_avro import row as avro_row

_FULL = {
    "id": "int(11)", "t": "tinyint(3) unsigned", "big": "bigint(20) unsigned", "f": "float(10,3)",
    "d": "decimal(12,6) unsigned", "v": "varbinary(9)", "on": "date", "at": "timestamp(6)",
    "y": "year(4)", "e": "enum('a','b')", "s": "set('a','b')", "b": "bit(10)", "j": "json",
}  # fmt: skip
_SENT = {
    "id": "1", "t": "255", "big": "18446744073709551615", "f": "0.5", "d": "1.500000",
    "v": "\x80\x01", "on": "2024-02-29", "at": "2024-02-29 08:00:00.123456", "y": "2024", "e": "2",
    "s": "3", "b": "514", "j": '{"a": 1}',
}  # fmt: skip
_READ = {
    "id": 1, "t": 255, "big": Decimal(2**64 - 1), "f": 0.5, "d": Decimal("1.5"), "v": b"\x80\1",
    "on": date(2024, 2, 29), "at": datetime(2024, 2, 29, 8, 0, 0, 123456, UTC), "y": 2024, "e": "b",
    "s": "a,b", "b": b"\x02\x02", "j": '{"a": 1}',
}  # fmt: skip


def _message(id_: int) -> Record:
    return ticdc("INSERT", [row(id_)])


def _watermark() -> Record:
    return ticdc("TIDB_WATERMARK", None, database="", table="", _tidb={"watermarkTs": 9})


def _ddl() -> Record:
    return ticdc("CREATE", None, isDdl=True, mysqlType=None, pkNames=None, sql="CREATE TABLE items")


def _typed(**types: str) -> Record:
    """A message with these types and a key alone."""
    return ticdc("INSERT", [{"id": "1", **dict.fromkeys(types, "1")}], types=types)


def _of_source(**members: Any) -> Record:
    """An event of the Debezium protocol that changes no row."""
    source = {"connector": "TiCDC", "db": "shop", "table": "items", "commit_ts": 9}
    return None, compact({"payload": {"source": source, **members}})


def _of_maxwell(kind: str, **images: Any) -> Record:
    key = {"ts": 5, "scm": "shop", "tbl": "items", "t": 1}
    event_ = {"database": "shop", "table": "items", "type": kind, "ts": 1, **images}
    return compact(key), compact(event_)


_PRICE = decimal(6, 2)
_DEBEZIUM = {"id": "long", "name": "string", "price": "decimal(8,2)", "stock": "integer"}

CASES: dict[str, list[Case]] = {
    "TiCDC, canal-json, `test_utils.go`, `canal_json_test.go`": [
        read([_READ], ticdc("INSERT", [_SENT], types=_FULL, mysqlType=_FULL)),
        read([{"id": 1}, {"id": 2}], ticdc("INSERT", [row(1)]),
             ticdc("UPDATE", [row(2)], [row(2)]), ticdc("DELETE", [row(2)])),
    ],
    "TiCDC, canal-json, the same without `content-compatible`, `type_test.go`": [
        Case([_typed(x=type_)]) for type_ in ("decimal", "bit", "enum", "set", "vector")
    ],
    "TiCDC, canal-json, `TestMessageLargeHandleKeyOnly`, `TestLargeMessageClaimCheck`": [
        Case([ticdc("INSERT", [{"id": "1"}], types={}, _tidb={"commitTs": 5, **extension})])
        for extension in ({"onlyHandleKey": True}, {"claimCheckLocation": "file:///x"})
    ],
    "TiCDC, canal-json, `TestDDLSequence`, `TestCheckpointTs`, `TestRowKey`": [
        read([{"id": 1}], _ddl(), _watermark(),
             ticdc("INSERT", [row(1)], _tidb={"commitTs": 5, "rowkey": "dA=="})),
    ],
    "TiCDC, canal-json, `delete-only-output-handle-key-columns`": [
        read([{"id": 1}], ticdc("INSERT", [row(1)]),
             ticdc("DELETE", [{"id": "1"}], mysqlType={"id": "int"})),
    ],
    "TiCDC, canal-json, `TestCanalJSONBatchDecoderWithTerminator`": [
        Case([(None, b"\n".join(value or b"" for _, value in map(_message, (1, 2))))])
    ],
    "TiCDC, canal, `canal_encoder_test.go`": [Case([(None, b"\x08\x01\x28\x02\x32\x07\x0a")])],
    "TiCDC, debezium, `codec_test.go`": [
        read(
            [{"id": 1, "stock": 1}],
            ticdc_debezium(1),
            ticdc_debezium(1, "d"),
            _of_source(op="m"),
            _of_source(ddl="RENAME TABLE items TO others", tableChanges=[]),
            **_DEBEZIUM,
        )
    ],
    "TiCDC, debezium, `testdata/datatype.dbz.json`": [
        Case([Flavour(schemas=True).record(payload("c", None, image(1)), 1)], [{"id": 1}])
    ],
    "TiCDC, debezium-avro, `avro_test.go`": [
        Case(
            [record(_PRICE, event("c", None, avro_row(125), 7))],
            [{"id": 1, "price": Decimal("1.25")}],
            schemas=schemas(_PRICE),
        )
    ],
    "TiCDC, maxwell, `maxwell_encoder_test.go`": [
        Case([_of_maxwell("insert", data={"id": 1})], declared={"id": "int"}),
        Case([_of_maxwell("delete", old={"id": 1})], declared={"id": "int"}),
    ],
}  # fmt: skip
