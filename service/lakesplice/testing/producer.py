"""Creates topics, produces simulated events into a real Kafka, and reads topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import Final, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from lakesplice.errors import SourceUnavailable
from lakesplice.testing.oracle import Record
from lakesplice.testing.shop.events import Event

_REQUEST_SECONDS: Final = 30.0
_POLL_MILLISECONDS: Final = 200
_BATCH_BYTES: Final = 1 << 18
_LINGER_MILLISECONDS: Final = 5
# Simulated times are in the past; a broker's usual retention would delete such records within
# minutes.
_KEEP_ALL: Final = {"retention.ms": "-1"}


def create_topics(
    bootstrap_servers: str,
    topics: Sequence[str],
    *,
    partitions: int = 3,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Create the topics that don't exist yet, unreplicated; their records are never deleted.

    `settings` are further properties, which take precedence. Blocks until each topic has a leader.
    Raises `SourceUnavailable` if the broker takes too long.
    """
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        known = set(admin.list_topics())
        wanted = [
            NewTopic(topic, partitions, 1, topic_configs={**_KEEP_ALL, **(settings or {})})
            for topic in topics
            if topic not in known
        ]
        if wanted:
            timeout = int(_REQUEST_SECONDS * 1000)
            admin.create_topics(wanted, timeout_ms=timeout, wait_for_metadata=True)
    except KafkaError as error:
        raise _unavailable("the topics could not be created", bootstrap_servers, error) from error
    finally:
        admin.close()


class EventProducer:
    """Produces events in order, acknowledged by every replica, none lost and none twice.

    A key gets the same partition as from every other Kafka client. A context manager; leaving it
    closes the connections. Used by one thread at a time.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            acks="all",
            enable_idempotence=True,
            batch_size=_BATCH_BYTES,
            linger_ms=_LINGER_MILLISECONDS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def produce(self, events: Iterable[Event]) -> list[Record]:
        """Send the events and return them as records, in order, once all are acknowledged.

        Raises `SourceUnavailable` if one isn't acknowledged; any of them may have been written
        then.
        """
        sent = [(event, self._send(event)) for event in events]
        try:
            self._producer.flush(timeout=_REQUEST_SECONDS)
            places = [(event, future.get(timeout=_REQUEST_SECONDS)) for event, future in sent]
        except KafkaError as error:
            raise _unavailable("events were refused", self._bootstrap_servers, error) from error
        return [
            Record(event.topic, place.partition, place.offset, event.key, event.value)
            for event, place in places
        ]

    def close(self) -> None:
        """Close the connections; events that aren't acknowledged by then are abandoned after a
        moment.
        """
        self._producer.close(timeout=_REQUEST_SECONDS)

    def _send(self, event: Event):  # type: ignore[no-untyped-def]  # the client has no types
        return self._producer.send(
            event.topic,
            value=event.value,
            key=event.key,
            headers=list(event.headers),
            timestamp_ms=event.timestamp_ms,
        )


def read_topics(
    bootstrap_servers: str, topics: Sequence[str], *, seconds_max: float = 60.0
) -> list[Record]:
    """Return every record of the topics up to their present ends, by topic, partition and offset.

    Raises `SourceUnavailable` if that takes longer than `seconds_max`.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers, enable_auto_commit=False, group_id=None
    )
    deadline = monotonic() + seconds_max
    records: list[Record] = []
    try:
        assigned = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        ends = consumer.end_offsets(assigned)
        while any(consumer.position(place) < end for place, end in ends.items()):
            if monotonic() > deadline:
                raise SourceUnavailable("the topics could not be read in time", topics=topics)
            for batch in consumer.poll(timeout_ms=_POLL_MILLISECONDS).values():
                records += (Record(r.topic, r.partition, r.offset, r.key, r.value) for r in batch)
    except KafkaError as error:
        raise _unavailable("the topics could not be read", bootstrap_servers, error) from error
    finally:
        consumer.close()
    return sorted(records, key=lambda record: record[:3])


def _unavailable(what: str, bootstrap_servers: str, error: KafkaError) -> SourceUnavailable:
    return SourceUnavailable(
        f"{what}; see that the broker runs and answers",
        bootstrap_servers=bootstrap_servers,
        error=repr(error),
    )
