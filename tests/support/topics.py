"""Writes records into real topics: chosen partitions, any bytes, and transaction markers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from lakesplice.testing.oracle import Record
from lakesplice.testing.producer import create_topics

RECORD_BYTES_MAX = 20_000_000
_FLUSH_SECONDS = 60.0
_UNKNOWN = -1


def make_topics(bootstrap_servers: str, partitions: Mapping[str, int]) -> None:
    """Create topics, each with its number of partitions, that take records of 20 MB."""
    settings = {"max.message.bytes": str(RECORD_BYTES_MAX)}
    for count in sorted(set(partitions.values())):
        names = [name for name, wanted in partitions.items() if wanted == count]
        create_topics(bootstrap_servers, names, partitions=count, settings=settings)


class Sender:
    """Sends to the partitions it is told, in order; each call ends when all is acknowledged."""

    def __init__(self, bootstrap_servers: str, **options: Any) -> None:
        self._settings = {"bootstrap.servers": bootstrap_servers, "group.id": "offsets"}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                # With more, a record that is sent again to a partition just made can come behind
                # the next one; the broker takes it for sent twice, and it is lost.
                "max.in.flight.requests.per.connection": 1,
                "message.max.bytes": RECORD_BYTES_MAX,
                "linger.ms": 2,
                **options,
            }
        )

    def send(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> Record:
        """Send one record and return it with its offset."""
        (record,) = self.send_all([(topic, partition, key, value)])
        return record

    def send_all(
        self, records: Iterable[tuple[str, int, bytes | None, bytes | None]]
    ) -> list[Record]:
        """Send (topic, partition, key, value) in this order; return them with their offsets."""
        sent: list[Record | None] = []
        for number, (topic, partition, key, value) in enumerate(records):
            sent.append(None)

            def arrived(error: Any, message: Any, number: int = number) -> None:
                assert error is None, error
                offset = message.offset()
                place = message.topic(), message.partition(), _UNKNOWN if offset is None else offset
                sent[number] = Record(*place, message.key(), message.value())

            self._producer.produce(
                topic, partition=partition, key=key, value=value, on_delivery=arrived
            )
            self._producer.poll(0)
        assert self._producer.flush(_FLUSH_SECONDS) == 0
        found = [record for record in sent if record is not None]
        assert len(found) == len(sent)
        return self._with_offsets(found)

    def _with_offsets(self, sent: list[Record]) -> list[Record]:
        """The records with their offsets, also those that a slow broker got twice: it acknowledges
        them without one. Nobody else sends to these partitions, so they are the last ones there.
        """
        unknown = {record[:2] for record in sent if record.offset == _UNKNOWN}
        if not unknown:
            return sent
        found, consumer = list(sent), Consumer(self._settings)
        for place in unknown:
            end = consumer.get_watermark_offsets(TopicPartition(*place), _FLUSH_SECONDS)[1]
            ours = [number for number, record in enumerate(sent) if record[:2] == place]
            assert end >= len(ours), f"the broker has lost records of {place}"
            for offset, number in enumerate(ours, end - len(ours)):
                assert sent[number].offset in (_UNKNOWN, offset), sent[number]
                found[number] = sent[number]._replace(offset=offset)
        consumer.close()
        return found


def read_capture(path: Path, prefix: str) -> list[Record]:
    """Return a capture's records of row changes, their topics named `<prefix>.<topic>`."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        Record(
            f"{prefix}.{row['topic']}",
            row["partition"],
            row["offset"],
            _bytes(row["key"]),
            _bytes(row["value"]),
        )
        for row in rows
        if ".shop." in row["topic"]
    ]


def resend(bootstrap_servers: str, records: Sequence[Record]) -> None:
    """Send records anew, to their partitions; they must come to their offsets again."""
    ordered = sorted(records, key=lambda record: record[:3])
    again = Sender(bootstrap_servers).send_all(
        (record.topic, record.partition, record.key, record.value) for record in ordered
    )
    assert sorted(again, key=lambda record: record[:3]) == ordered


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
