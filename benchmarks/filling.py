"""Fills topics faster than kafka-python can, so that a benchmark waits for what it measures."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, Message, Producer

from lakesplice.errors import SourceUnavailable
from lakesplice.testing.shop import Event

_FLUSH_SECONDS = 120.0
_QUEUE_MESSAGES = 200_000


def fill(bootstrap_servers: str, events: Iterable[Event]) -> int:
    """Produce the events in order and return how many once all are acknowledged.

    Partitions are chosen as every other Kafka client does (murmur2 of the key). The topics must
    exist. Raises `SourceUnavailable` when an event was refused.
    """
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "compression.type": "none",
            "queue.buffering.max.messages": _QUEUE_MESSAGES,
        }
    )
    count = 0
    for count, event in enumerate(events, 1):
        while True:
            try:
                producer.produce(
                    event.topic,
                    value=event.value,
                    key=event.key,
                    headers=list(event.headers),
                    timestamp=event.timestamp_ms,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(0.1)
        if count % 1_000 == 0:
            producer.poll(0)
    if producer.flush(_FLUSH_SECONDS) or failed:
        raise SourceUnavailable(
            "events were refused; see that the broker runs and the topic exists",
            refused=len(failed),
            first=str(failed[0]) if failed else "no answer in time",
        )
    return count
