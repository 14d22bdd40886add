"""A source's DROPs as its topic of schema changes reports them, at the position of an event."""

from __future__ import annotations

import json

from lakesplice.formats.events.ddl import SchemaChange, SchemaHistory, read_schema_change
from lakesplice.model.names import TableName
from lakesplice.planning.sources.dropped_tables import DropHistory
from lakesplice.testing.shop import Event
from tests.support.schema_changes import connect_record


class Teller:
    """The topic of schema changes for one table, and how far a driver has read it."""

    def __init__(self, table: TableName) -> None:
        self.table = table
        self.records: list[bytes] = []
        self._history = SchemaHistory()
        self._read = 0
        self._since = 0

    def tell(self, sql: str, at: Event, later: int = 0, **source: object) -> None:
        """Tell of a statement at the place of an event, or some bytes later, a minute after it."""
        told = json.loads(at.value or b"")
        place = told.get("payload", told)["source"]
        known = {"file": place["file"], "pos": place["pos"] + later, "gtid": place.get("gtid")}
        known["ts_ms"] = place["ts_ms"] + 60_000
        record = connect_record(
            sql, database=self.table.database, changes=None, **{**known, **source}
        )
        self.records.append(record)

    def drop(self, at: Event, **source: object) -> None:
        """Tell of the table's DROP."""
        self.tell(f"DROP TABLE `{self.table.table}`", at, 0, **source)

    def create(self, at: Event, **source: object) -> None:
        """Tell that the table is made again, just behind the event."""
        self.tell(f"CREATE TABLE `{self.table.table}` (id int)", at, 1, **source)

    def told(self) -> DropHistory:
        """Read all there is, as a driver does that goes on."""
        for record in self.records[self._read :]:
            change = read_schema_change(record)
            assert isinstance(change, SchemaChange)
            self._history.take(change)
        self._read = len(self.records)
        drops = self._history.drops(self.table)
        return DropHistory(drops, self._history.ordered, self._since, self._since)

    def begin_anew(self) -> None:
        """Read all from the beginning, as a driver does that starts."""
        self._history, self._read, self._since = SchemaHistory(), 0, 0
        self.told()
        self._since = self._history.drop_count
