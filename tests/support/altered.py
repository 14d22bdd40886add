"""Events of a source table whose columns change by ALTERs, and the table's history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from lakesplice.formats.events import TypeHistory
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.schema_changes import connect_record
from tests.support.simulated import rows_of

TOPIC = "t.s.t"
FOLLOWING = SchemaPolicy(rename_column=Behaviour.EVOLVE)
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


def told_by(*statements: tuple[int, str]) -> TypeHistory:
    """What a topic of schema changes says of the table, by statements and their places."""
    read = [
        read_schema_change(
            connect_record(sql, file="bin.000001", pos=pos, database="s", changes=None)
        )
        for pos, sql in statements
    ]
    changes = [change for change in read if isinstance(change, SchemaChange)]
    history = types_of(history_of(changes), TableName("s", "t"), ConverterSettings())
    assert history is not None
    return history


class Life:
    """A topic of two partitions and its driver."""

    def __init__(
        self,
        lake: LocalStore,
        history: TypeHistory | None,
        policy: SchemaPolicy = FOLLOWING,
        read_tasks: int = 2,
    ) -> None:
        self.topic = SimulatedTopic("t.s.t", 2)
        self.driver = SimulatedDriver(
            lake,
            self.topic,
            FixedClock(),
            SeededEntropy(1),
            ranges=2,
            read_tasks=read_tasks,
            policy=policy,
            history=history,
        )
        self.store = lake.within("s/t")

    def take(self, *events: Event, partition: int = 0) -> None:
        self.topic.append(partition, events)
        self.driver.batch()

    def batch_unless_parked(self, ends: dict[int, Offset] | None = None) -> None:
        """Run a batch, if the table isn't parked."""
        if not self.parked:
            self.driver.batch(ends)

    @property
    def parked(self) -> str:
        parked = self.driver.table.parked
        return "" if parked is None else f"{parked.code}: {parked.detail}"

    def rows(self, view: View = View.REAL_TIME) -> list[dict[str, Any]]:
        return rows_of(self.store, view)


def of_delta_reader(folder: Path) -> list[dict[str, Any]]:
    """The rows as any Delta reader has them, under all names that the table shows."""
    found = DeltaTable(str(folder)).to_pyarrow_table().sort_by("id").to_pylist()
    return [{n: v for n, v in row.items() if not n.startswith("_")} for row in found]
