"""The embedded broker is a real one: it keeps what it acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from lakesplice.errors import SourceUnavailable
from lakesplice.testing.broker import LocalBroker

RECORDS = [f"record {number}".encode() for number in range(10)]


def _produce(bootstrap_servers: str, topic: str, values: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
    for value in values:
        producer.send(topic, value)
    producer.flush(timeout=30)
    producer.close(timeout=10)


def _consume(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    try:
        return [record.value for _, record in zip(range(count), consumer, strict=False)]
    finally:
        consumer.close()


def test_ten_records_come_back_in_order(kafka_broker: str, topic_name: str) -> None:
    _produce(kafka_broker, topic_name, RECORDS)
    assert _consume(kafka_broker, topic_name, len(RECORDS)) == RECORDS


def test_a_killed_broker_starts_again_on_its_data_and_its_port(
    own_broker: LocalBroker, topic_name: str
) -> None:
    _produce(own_broker.bootstrap_servers, topic_name, RECORDS)
    before = own_broker.bootstrap_servers
    own_broker.kill()
    assert not own_broker.is_running
    own_broker.start()
    assert own_broker.bootstrap_servers == before
    assert _consume(before, topic_name, len(RECORDS)) == RECORDS


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    broker = LocalBroker([tmp_path / "missing.jar"], tmp_path / "data")
    with pytest.raises(SourceUnavailable, match="could not be formatted") as caught:
        broker.start()
    assert "ClassNotFoundException" in str(caught.value.facts["log_end"])
    assert not broker.is_running
