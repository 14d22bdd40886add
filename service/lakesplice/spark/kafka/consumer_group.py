"""A consumer group without members: its offsets show other tools how far tables are, and those
tools may set them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakesplice.model.offsets import Offset
from lakesplice.spark.kafka.admin import KafkaAdmin

TopicPartition = tuple[str, int]
# Kafka keeps a text with each offset. Kafka's own tools leave it empty.
_OURS = "lakesplice"
_OFFSET = re.compile(
    r"[{ ]([^ =]+)-(\d+)=OffsetAndMetadata\{offset=(\d+), leaderEpoch=[^,]*, metadata='(.*?)'\}"
)


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset that a group has; `is_ours` if `write` wrote it."""

    offset: Offset
    is_ours: bool


class ConsumerGroup:
    """Reads and writes a group's offsets. Calls block for at most the request timeout and raise
    errors as `KafkaAdmin.ask`.
    """

    def __init__(self, admin: KafkaAdmin, name: str) -> None:
        self.name = name
        self._admin = admin

    def offsets(self) -> dict[TopicPartition, GroupOffset]:
        """Return the group's offsets; of a group that doesn't exist there are none."""
        answer = self._admin.ask(
            lambda client: (
                client.listConsumerGroupOffsets(self.name).partitionsToOffsetAndMetadata().get()
            ),
            right=f"DESCRIBE on group {self.name}",
        )
        return {
            (topic, int(at)): GroupOffset(Offset(int(offset)), metadata == _OURS)
            for topic, at, offset, metadata in _OFFSET.findall(answer)
        }

    def write(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Write offsets, marked as ours. A group with a member refuses them."""
        jvm = self._admin.jvm
        request = jvm.java.util.HashMap()
        partition = jvm.org.apache.kafka.common.TopicPartition
        value = jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        for (topic, at), offset in offsets.items():
            request.put(partition(topic, at), value(offset, _OURS))

        def write(client: Any) -> Any:
            written = client.alterConsumerGroupOffsets(self.name, request).all()
            written.get()
            return written

        self._admin.ask(write, right=f"READ on group {self.name} and on its topics")

    def close(self) -> None:
        """Give the connection back; the next call opens a new one."""
        self._admin.close()
