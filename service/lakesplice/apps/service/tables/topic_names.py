"""Which table of the source a topic belongs to, if dots in its name make that ambiguous.

`prefix.database.table` is one table by its last two parts. In `a.b.c.d` the prefix, the database or
the table may contain a dot. If the lake has the topic's table, it decides, else the events do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from lakesplice.apps.service.driver import Driver
from lakesplice.errors import LakespliceError, TableNotFoundError
from lakesplice.formats.events import DeadReason, DecodeContext, decode
from lakesplice.model.names import TableName, possible_tables
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.protocol.ports import schemas_of
from lakesplice.table.protocol.snapshot import open_snapshot

# The first records of one partition of a topic: columns key, value and offset.
FirstRecords = Callable[[Topic], pa.RecordBatch]
_PARTS_CLEAR = 3
# With each further part there are more ways to read a name, and each is tried.
_PARTS_MAX = 10


class TopicNames:
    """Knows topics' tables; without `read` a topic's last two parts are its table.

    `learn` is called by one thread and blocks on broker and store; the rest is safe from any
    thread.
    """

    def __init__(self, driver: Driver, read: FirstRecords | None = None) -> None:
        self._driver = driver
        self._read = read
        self._known: dict[str, TableName] = {}

    def of(self, topic: str) -> TableName:
        """Return the topic's table: by the last two parts of its name until `learn` has found out
        more.

        `UsageError` if the name doesn't end in two parts.
        """
        return self._known.get(topic) or TableName.from_topic(topic)

    def is_unknown(self, topic: str) -> bool:
        """Whether the topic may belong to another table than its last two parts say."""
        parts = topic.split(".")
        open_ = all(parts) and _PARTS_CLEAR < len(parts) <= _PARTS_MAX
        return self._read is not None and open_ and topic not in self._known

    def learn(self, topics: Iterable[Topic]) -> None:
        """Find out what can be known of these topics; a topic without records stays unknown."""
        for topic in topics:
            try:
                name = self._in_lake(topic.name) or self._in_records(topic)
            except LakespliceError as error:
                self._driver.log.warning("topic-not-named", topic=topic.name, reason=str(error))
                continue
            if name is not None:
                self._known[topic.name] = name

    def _in_lake(self, topic: str) -> TableName | None:
        settings = self._driver.settings
        for name in possible_tables(topic):
            try:
                found = open_snapshot(self._driver.lake.within(settings.target(name).path))
            except TableNotFoundError:
                continue
            if topic in found.manifest.sources:
                return name
        return None

    def _in_records(self, topic: Topic) -> TableName | None:
        if self._read is None or not topic.behind(topic.earliest):
            return None
        records = self._read(topic)
        names = possible_tables(topic.name)
        fitting = [name for name in names if self._records_fit(records, name)]
        # If events don't name their table, or name several, the last two parts count.
        return fitting[0] if len(fitting) == 1 else names[0]

    def _records_fit(self, records: pa.RecordBatch, name: TableName) -> bool:
        schemas = schemas_of([records], self._driver.schemas)
        context = DecodeContext(name, None, self._driver.settings.format(name), schemas=schemas)
        return DeadReason.WRONG_TABLE not in decode(records, context).dead.reason
