"""Writes change events byte for byte as Debezium's MariaDB connector does with JSON converters.

The parts that a table's events share are rendered once, so an event costs little more than its row
images.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

from lakesplice.testing.shop.binlog import Moment
from lakesplice.testing.shop.columns import Value
from lakesplice.testing.shop.tables import TableSpec

CONNECTOR_VERSION: Final = "3.5.0.Final"
NEW_KEY: Final = "__debezium.newkey"
OLD_KEY: Final = "__debezium.oldkey"

Headers = tuple[tuple[str, bytes], ...]

_SNAPSHOT_STATES = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)


class Event(NamedTuple):
    """A Kafka record to send. `value` None makes it a tombstone; `key` None means that the table
    has no key.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


def _member(type_: str, name: str, *, optional: bool) -> dict[str, object]:
    return {"type": type_, "optional": optional, "field": name}


def _source_field() -> dict[str, object]:
    snapshot = {
        "type": "string",
        "optional": True,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": _SNAPSHOT_STATES},
        "default": "false",
        "field": "snapshot",
    }
    fields = [
        _member("string", "version", optional=False),
        _member("string", "connector", optional=False),
        _member("string", "name", optional=False),
        _member("int64", "ts_ms", optional=False),
        snapshot,
        _member("string", "db", optional=False),
        _member("string", "sequence", optional=True),
        _member("int64", "ts_us", optional=True),
        _member("int64", "ts_ns", optional=True),
        _member("string", "table", optional=True),
        _member("int64", "server_id", optional=False),
        _member("string", "gtid", optional=True),
        _member("string", "file", optional=False),
        _member("int64", "pos", optional=False),
        _member("int32", "row", optional=False),
        _member("int64", "thread", optional=True),
        _member("string", "query", optional=True),
    ]
    return _struct(fields, "io.debezium.connector.mariadb.Source", version=1, field="source")


def _struct(
    fields: list[dict[str, object]],
    name: str,
    *,
    optional: bool = False,
    version: int | None = None,
    field: str = "",
) -> dict[str, object]:
    described: dict[str, object] = {
        "type": "struct",
        "fields": fields,
        "optional": optional,
        "name": name,
    }
    if version is not None:
        described["version"] = version
    return {**described, "field": field} if field else described


def envelope_schema(table: TableSpec, topic: str) -> dict[str, object]:
    """The `schema` block of the values in a table's topic."""
    row = [column.connect_field for column in table.columns]
    transaction = [
        _member("string", "id", optional=False),
        _member("int64", "total_order", optional=False),
        _member("int64", "data_collection_order", optional=False),
    ]
    fields = [
        _struct(row, f"{topic}.Value", optional=True, field="before"),
        _struct(row, f"{topic}.Value", optional=True, field="after"),
        _source_field(),
        _struct(transaction, "event.block", optional=True, version=1, field="transaction"),
        _member("string", "op", optional=False),
        *(_member("int64", name, optional=True) for name in ("ts_ms", "ts_us", "ts_ns")),
    ]
    return _struct(fields, f"{topic}.Envelope", version=2)


def key_schema(table: TableSpec, topic: str) -> dict[str, object]:
    """The `schema` block of the keys in a table's topic."""
    return _struct(
        [table.columns[index].connect_field for index in table.key_indexes], f"{topic}.Key"
    )


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Image:
    """A row with its JSON: the after-image of one change and the before-image of the next."""

    values: tuple[Value, ...]
    text: str


class EventWriter:
    """Writes the events of one table at one version of its schema.

    `value_prefix` and `key_prefix` are what every value and key starts with, up to the payload.
    """

    def __init__(
        self, table: TableSpec, server: str, database: str, run_id: str, *, with_schemas: bool
    ) -> None:
        self.table = table
        self.topic = f"{server}.{database}.{table.name}"
        self._encoders = [column.encode for column in table.columns]
        members = (json.dumps(column.name).replace("%", "%%") for column in table.columns)
        self._row_template = "{" + ",".join(f"{name}:%s" for name in members) + "}"
        keys = (json.dumps(name).replace("%", "%%") for name in table.key)
        self._key_template = "{" + ",".join(f"{name}:%s" for name in keys) + "}"
        self.value_prefix, self.key_prefix, self._suffix = "", "", ""
        if with_schemas:
            self.value_prefix = (
                f'{{"schema":{_compact(envelope_schema(table, self.topic))},"payload":'
            )
            self.key_prefix = f'{{"schema":{_compact(key_schema(table, self.topic))},"payload":'
            self._suffix = "}"
        self._source_head = (
            f'"source":{{"version":"{CONNECTOR_VERSION}","connector":"mariadb","name":"{server}"'
        )
        self._source_database = f'"db":"{database}","sequence":null'
        self._context: Headers = (
            ("__debezium.context.connectorLogicalName", server.encode()),
            ("__debezium.context.taskId", b"0"),
            ("__debezium.context.connectorName", b"mariadb"),
            ("__debezium.context.runId", run_id.encode()),
        )

    def image(self, values: tuple[Value, ...]) -> Image:
        """Render a row, once for all its events."""
        fragments = (encode(v) for encode, v in zip(self._encoders, values, strict=True))
        return Image(values, self._row_template % tuple(fragments))

    def key_of(self, values: tuple[Value, ...]) -> str:
        """Return the row's key as plain JSON, as in headers."""
        indexes = self.table.key_indexes
        return self._key_template % tuple(self._encoders[i](values[i]) for i in indexes)

    def change(
        self,
        op: str,
        before: Image | None,
        after: Image | None,
        moment: Moment,
        row: int,
        headers: Headers = (),
    ) -> Event:
        """One change of a row; `row` counts within its statement."""
        present = after or before
        assert present is not None  # a change without images has no row
        image_before = before.text if before else "null"
        image_after = after.text if after else "null"
        text = (
            f'{self.value_prefix}{{"before":{image_before},"after":{image_after},'
            f'{self._source(moment, row)},"transaction":null,"op":"{op}",'
            f"{moment.processed(row)}}}{self._suffix}"
        )
        return Event(
            self.topic,
            self._key(present.values),
            text.encode(),
            headers + self._context,
            moment.produced_ms,
        )

    def tombstone(self, gone: Image, moment: Moment, headers: Headers = ()) -> Event:
        """Return the tombstone after a delete, by which topic compaction can remove the key."""
        return Event(
            self.topic, self._key(gone.values), None, headers + self._context, moment.produced_ms
        )

    def key_header(self, name: str, values: tuple[Value, ...]) -> Headers:
        """Return the header that connects the two halves of a key change."""
        return ((name, self.key_of(values).encode()),)

    def _key(self, values: tuple[Value, ...]) -> bytes | None:
        if not self.table.key:
            return None
        return f"{self.key_prefix}{self.key_of(values)}{self._suffix}".encode()

    def _source(self, moment: Moment, row: int) -> str:
        return (
            f'{self._source_head},"ts_ms":{moment.second}000,"snapshot":{moment.snapshot},'
            f"{self._source_database},"
            f'"ts_us":{moment.second}000000,"ts_ns":{moment.second}000000000,'
            f'"table":"{self.table.name}","server_id":{moment.server_id},"gtid":{moment.gtid},'
            f'"file":"{moment.file}","pos":{moment.pos},"row":{row},"thread":null,"query":null}}'
        )
