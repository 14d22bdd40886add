"""Simulated events through a real broker and back."""

from __future__ import annotations

from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import replay
from lakesplice.testing.producer import EventProducer, create_topics, read_topics
from lakesplice.testing.shop import Shop


def test_produced_records_are_read_back_and_replay_to_the_truth(
    kafka_broker: str, topic_name: str
) -> None:
    shop = Shop(11, server=topic_name.replace(".", "-"), rows=50)
    create_topics(kafka_broker, shop.topics, partitions=3)
    create_topics(kafka_broker, shop.topics, partitions=3)
    with EventProducer(kafka_broker) as producer:
        produced = producer.produce(shop.snapshot()) + producer.produce(shop.step(1_000))
    records = read_topics(kafka_broker, shop.topics)
    assert records == sorted(produced, key=lambda record: record[:3])
    assert {record.partition for record in records} == {0, 1, 2}
    partition_of: dict[tuple[str, bytes | None], set[int]] = {}
    for record in records:
        partition_of.setdefault((record.topic, record.key), set()).add(record.partition)
    assert all(len(partitions) == 1 for partitions in partition_of.values())
    states = replay(records)
    for topic, table in zip(shop.topics, shop.tables, strict=True):
        assert compare(shop.truth(table.name), states[topic].table(), table.key) is None
