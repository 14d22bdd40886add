"""A topic with a long backlog beside one with hardly any."""

from __future__ import annotations

from pathlib import Path

from lakesplice.testing.producer import EventProducer, create_topics
from lakesplice.testing.shop import WideTable
from lakesplice.testing.shop.tables import WIDE
from tests.support.running import Lake, stands_at

# More than the five batches from which on a topic is far behind.
BACKLOG, FEW = 3_500, 10


def test_a_long_backlog_does_not_keep_a_small_table_waiting(
    kafka_broker: str, topic_name: str, tmp_path: Path
) -> None:
    late = WideTable(BACKLOG, table="late", server=topic_name)
    fresh = WideTable(FEW, table="fresh", server=topic_name)
    create_topics(kafka_broker, [late.topic, fresh.topic], partitions=1)
    with EventProducer(kafka_broker) as producer:
        producer.produce([*late.snapshot(), *fresh.snapshot()])
    lake = Lake(
        tmp_path,
        kafka_broker,
        rf"{topic_name}\..*",
        kafka={"offsets_per_batch_max": 500},
        tables=[{"match": "shop.*", "columns": {c.name: c.declared for c in WIDE.columns}}],
    )
    with lake.running() as service:
        service.until(lambda: stands_at(lake, {(fresh.topic, 0): FEW}), "the small table is there")
        assert not stands_at(lake, {(late.topic, 0): BACKLOG})
        service.until(lambda: stands_at(lake, {(late.topic, 0): BACKLOG}), "the backlog is read")
        service.until(
            lambda: any(said["reason"] == "lanes" for said in lake.said("query-restarts")),
            "both are read together again",
        )
        service.terminate()
        service.ends_well(60)
    lanes = {said["lane"] for said in lake.said("query-started")}
    assert lanes == {"main", "catch-up"}
    assert lake.table(late.topic).read().num_rows == BACKLOG
    assert lake.table(fresh.topic).read().num_rows == FEW
