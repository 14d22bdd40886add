"""The demo's generator against a real broker."""

from __future__ import annotations

from lakesplice.apps.demo.generator import Generator
from lakesplice.storage.system import SystemClock
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import replay
from lakesplice.testing.producer import read_topics
from lakesplice.testing.shop import Shop
from tests.support.waiting import until

EVENTS = 800


def test_records_produced_until_the_shop_stops_are_its_rows(
    kafka_broker: str, topic_name: str
) -> None:
    clock = SystemClock()
    shop = Shop(3, rows=50, server=topic_name.replace(".", "-"), clock=clock)
    generator = Generator(kafka_broker, shop, rate=2_000, clock=clock)
    generator.start()
    until(lambda: generator.produced.events >= EVENTS, "enough events")
    generator.stop()
    records = read_topics(kafka_broker, shop.topics)
    produced = generator.produced
    assert produced.events == len(records) >= EVENTS
    assert produced.ends == {
        place: 1 + max(r.offset for r in records if r[:2] == place)
        for place in {record[:2] for record in records}
    }
    states = replay(records)
    for topic, table in zip(shop.topics, shop.tables, strict=True):
        assert compare(shop.truth(table.name), states[topic].table(), table.key) is None


def test_a_generator_that_never_began_stops_at_once() -> None:
    Generator("127.0.0.1:1", Shop(1, rows=1), rate=1, clock=SystemClock()).stop()
