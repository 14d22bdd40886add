"""Fills shadows only from their topic, whose records are read again from the first one."""

from __future__ import annotations

from lakesplice.apps.bootstrap.fill_tools import FillTools
from lakesplice.apps.bootstrap.shadow_upkeep import ShadowUpkeep
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import BEFORE_ALL
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.layout import random_name


class TopicFill:
    """Fills shadows of the table `name`; its table at the source is `origin`."""

    def __init__(self, tools: FillTools, name: TableName, origin: TableName, topic: Topic) -> None:
        self._tools, self._name, self._origin, self._topic = tools, name, origin, topic

    def plan(self) -> ShadowPlan:
        """Return a plan that starts at the topic's first record. Raises `UsageError` if the broker
        has deleted records, since rows that didn't change later would be missing.
        """
        topic, tools = self._topic, self._tools
        require_all_records(topic.earliest)
        return ShadowPlan(
            shadow=random_name(tools.entropy),
            topic=topic.name,
            topic_id=topic.id,
            server="",
            database=self._origin.database,
            table=self._origin.table,
            start=BEFORE_ALL,
            created_ms=tools.clock.now_ms(),
            ends=dict.fromkeys(topic.latest, Offset(0)),
            filled_from=FilledFrom.TOPIC,
        )

    def fill(self, table: DriverTable, _plan: ShadowPlan) -> bool:
        """Read all records of the topic; then the shadow equals the source at one moment.
        Blocks.
        """
        upkeep = ShadowUpkeep(table, self._tools.entropy)
        self._tools.feed(table, self._name, self._origin, upkeep.after_batch)
        return True


def require_all_records(earliest: Offsets) -> None:
    """Check by the first offset of each partition that a topic still has all its records; raises
    `UsageError` if not. Log compaction keeps the newest record of each key, which is enough, and
    leaves the first offset at 0.
    """
    if lacking := {at: first for at, first in sorted(earliest.items()) if first}:
        raise UsageError(
            "the topic's retention deleted its first records, so rows that didn't change since"
            " would be missing; give --from bootstrap, which reads them from the database",
            first_offsets=lacking,
        )
