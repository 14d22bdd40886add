"""Topics with a long backlog, or in their first load, beside one with hardly any.

In the gate `tests/property/test_service_loop.py` holds the loop itself to it, with drawn topics.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lakesplice.testing.producer import EventProducer, create_topics
from lakesplice.testing.shop import WideTable
from lakesplice.testing.shop.tables import WIDE
from tests.support.running import Lake, RunningService, stands_at

# More than the five batches from which on a topic is far behind.
BACKLOG, FEW = 3_500, 10
# Each is less than a topic has to be behind by itself.
NEW_TABLES, ROWS_OF_NEW = 5, 1_000


@pytest.mark.nightly
def test_a_long_backlog_does_not_delay_a_small_table(
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
        first_loads_give_way(service, lake, kafka_broker, fresh)
        service.terminate()
        service.ends_well()
    lanes = {said["lane"] for said in lake.said("query-started")}
    assert lanes == {"main", "catch-up"}
    assert lake.table(late.topic).read().num_rows == BACKLOG
    assert lake.table(fresh.topic).read().num_rows == FEW


def first_loads_give_way(service: RunningService, lake: Lake, servers: str, hot: WideTable) -> None:
    """New tables come all at once; a change of a table that is there isn't behind all of theirs."""
    server, *_ = hot.topic.rsplit(".", 2)
    new = [WideTable(ROWS_OF_NEW, table=f"new{at}", server=server) for at in range(NEW_TABLES)]
    create_topics(servers, [table.topic for table in new], partitions=1)
    with EventProducer(servers) as producer:
        producer.produce([event for table in new for event in table.snapshot()])
        service.until(lambda: loads_are_apart(lake), "the new tables have a query of their own")
        producer.produce([*hot.updates(np.arange(1, FEW + 1))])
    service.until(lambda: stands_at(lake, {(hot.topic, 0): 2 * FEW}), "the change is there")
    ends = {(table.topic, 0): ROWS_OF_NEW for table in new}
    assert not stands_at(lake, ends), "which would prove nothing"
    service.until(lambda: stands_at(lake, ends), "all new tables are read")


def loads_are_apart(lake: Lake) -> bool:
    """Whether the query that catches up reads several topics."""
    started = lake.said("query-started")
    return any(said["lane"] == "catch-up" and said["topics"] > 1 for said in started)
