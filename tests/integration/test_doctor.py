"""`lakesplice doctor` with a real broker, a real lake and a Java, as a new user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from lakesplice.testing.producer import EventProducer, create_topics
from lakesplice.testing.shop import Shop
from tests.support.running import Lake

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def shop(kafka_broker: str) -> Shop:
    """Events of a shop, in topics of a day."""
    shop = Shop(7, server="doctor", rows=20)
    create_topics(kafka_broker, shop.topics, partitions=2)
    with EventProducer(kafka_broker) as producer:
        producer.produce(shop.snapshot())
        producer.produce(shop.step(200))
    return shop


def test_a_sound_set_up_is_reported_as_right_and_nothing_is_left_behind(
    kafka_broker: str, shop: Shop, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, kafka_broker, r"doctor\..*")
    code, found = lake.examined()
    told = {(row["area"], row["check"]): row for row in found}
    wrong = [row for row in found if row["verdict"] in ("problem", "unknown")]
    assert (code, wrong) == (0, [])
    assert f"{len(shop.topics)} topics" in told["topics", "matched"]["seen"]
    assert told["records", "format"]["seen"] == f"debezium-json in {len(shop.topics)} topics"
    assert "show no setting" in told["records", "values"]["seen"]
    assert "may be read" in told["broker", "rights"]["seen"]
    assert told["lake", "put-if-absent"]["verdict"] == "ok"
    assert not lake.root.exists()


def test_faults_of_topics_and_records_are_found_beside_each_other(
    kafka_broker: str, shop: Shop, topic_name: str, tmp_path: Path
) -> None:
    token = topic_name.replace(".", "-")
    short, compacted, strange, unnamed = (
        f"{token}.shop.{name}" for name in ("short", "compacted", "strange", "")
    )
    admin = KafkaAdminClient(bootstrap_servers=kafka_broker)
    admin.create_topics(
        [
            NewTopic(short, 1, 1, topic_configs={"retention.ms": str(HOUR_MS)}),
            NewTopic(compacted, 1, 1, topic_configs={"cleanup.policy": "compact"}),
            NewTopic(strange, 1, 1),
            NewTopic(unnamed, 1, 1),
        ]
    )
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka_broker)
    producer.send(strange, b"ann@example.org is not JSON")
    producer.close()
    lake = Lake(
        tmp_path,
        kafka_broker,
        rf"{token}\..*|doctor\.shop\.orders",
        schema_change_topics={"names": [f"{token}-none"]},
    )
    code, found = lake.examined()
    problems = {(row["area"], row["check"]): row for row in found if row["verdict"] == "problem"}
    assert code == 1
    assert problems.keys() == {
        ("broker", "retention"),
        ("broker", "compaction"),
        ("broker", "schema changes"),
        ("topics", "refused"),
        ("records", "format"),
    }
    assert short in problems["broker", "retention"]["seen"]
    assert compacted in problems["broker", "compaction"]["seen"]
    assert unnamed in problems["topics", "refused"]["seen"]
    assert strange in problems["records", "format"]["seen"]
    assert "ann@example.org" not in json.dumps(found)
