"""The whole service is killed (kill -9) at random moments, while changes arrive and are compacted,
and asked to end in the middle, without time to finish and with enough.

After each kill and end every table is compared with the result of its events up to its offsets; in
the end both views are compared with the rows of the database that made the events.
"""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.storage.local import LocalStore
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record, replay
from lakesplice.testing.producer import EventProducer, create_topics
from lakesplice.testing.shop import Shop
from tests.support.running import Lake, RunningService, ends_of, stands_at

KILLS_PER_ROUND = 10
# Small enough that every step of the protocol comes by between two kills.
SECTIONS = {
    "trigger": 0.2,
    # The next service waits for that of a killed one.
    "lease": 3,
    "kafka": {"offsets_per_batch_max": 500},
    "compaction": {"deltas_max": 2, "age_max": 3, "poll_seconds": 0.1},
    "index": {"runs_max": 2},
    "log": {"checkpoint_every": 3, "retention": 60, "readers_may_fail": True},
    "merge": {"files_max": 4},
    "vacuum": {"every": 1},
}
STEP_EVENTS = 10
# A kill comes after so many batches at most, and a little later; now and then during the start.
BATCHES_MAX = 3
SECONDS_LATER_MAX = 1.5
START_KILLED = 0.2
START_SECONDS_MAX = 10.0
PAUSE_SECONDS = 0.2
END_SECONDS_MAX = 400.0
INTO_THE_NEXT_SECONDS = 0.7
# To end Spark, and to finish a rewrite that runs.
STOP_SECONDS_MAX = 60.0
NO_TIME, TIME = 0, 60
MUCH = 1_500


@dataclass
class World:
    """The shop, its topics, and all that was sent."""

    shop: Shop
    producer: EventProducer
    records: list[Record] = field(default_factory=list)

    def work(self, events: int = STEP_EVENTS) -> None:
        self.records += self.producer.produce(self.shop.step(events))

    def work_for(self, seconds: float) -> None:
        """Let the shop work so long."""
        deadline, pause = monotonic() + seconds, threading.Event()
        while (left := deadline - monotonic()) > 0:
            self.work()
            pause.wait(min(PAUSE_SECONDS, left))

    def work_until(self, lake: Lake, batches: int) -> bool:
        """Let the shop work a little; whether so many batches are done."""
        self.work()
        return len(lake.said("batch")) >= batches


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Many kills come in rounds, each with a lake and a seed of its own: tests are bounded."""
    if "in_round" in metafunc.fixturenames:
        kills: int = metafunc.config.getoption("--kills")
        starts = range(0, kills, KILLS_PER_ROUND)
        rounds = [(at, min(KILLS_PER_ROUND, kills - start)) for at, start in enumerate(starts)]
        metafunc.parametrize("in_round", rounds, ids=lambda one: f"round {one[0]}")


def test_a_service_killed_or_asked_to_end_at_any_moment_loses_nothing(
    kafka_broker: str, tmp_path: Path, in_round: tuple[int, int], seed: int
) -> None:
    number_of_round, kills = in_round
    seed += number_of_round
    random = Random(seed)
    server = f"kills-{secrets.token_hex(4)}"
    shop = Shop(seed, rows=150, server=server)

    def lake_that_stops(stop_timeout: int) -> Lake:
        sections = {**SECTIONS, "stop_timeout": stop_timeout}
        return Lake(tmp_path, kafka_broker, rf"{server}\..*", **sections)

    lake = lake_that_stops(TIME)
    create_topics(kafka_broker, shop.topics)
    with EventProducer(kafka_broker) as producer:
        world = World(shop, producer)
        world.records += producer.produce(shop.snapshot())
        for number in range(kills):
            kill_once(world, lake, random, f"kill {number} of seed {seed}")
        world.work(MUCH)
        with lake_that_stops(NO_TIME).running() as service:
            stop_in_the_middle(world, lake, service, NO_TIME)
        finish(world, lake_that_stops(TIME))


def stop_in_the_middle(
    world: World, lake: Lake, service: RunningService, stop_timeout: int
) -> None:
    """Ask a service with much to do to end once it has done a little of it. With no time the
    running batch is dropped whole, with enough it is finished; it ends in time, and loses nothing.
    """
    done = len(lake.said("batch"))
    service.until(lambda: len(lake.said("batch")) > done, "a batch is done")
    # By then the next one runs.
    world.work_for(INTO_THE_NEXT_SECONDS)
    service.terminate()
    service.ends_well(stop_timeout + STOP_SECONDS_MAX)
    for topic in world.shop.topics:
        stands_where_it_says(world.records, lake, topic, f"stop_timeout={stop_timeout}")


def kill_once(world: World, lake: Lake, random: Random, when: str) -> None:
    done, queries = len(lake.said("batch")), len(lake.said("query-started"))
    with lake.running(own_jvm=True) as service:
        if random.random() < START_KILLED:
            world.work_for(random.uniform(0, START_SECONDS_MAX))
        else:
            wanted = done + random.randint(0, BATCHES_MAX)
            service.until(lambda: len(lake.said("query-started")) > queries, "a query starts")
            service.until(lambda: world.work_until(lake, wanted), f"{wanted} batches are done")
            world.work_for(random.uniform(0, SECONDS_LATER_MAX))
        assert service.is_running, service.tail()
        service.kill()
    for topic in world.shop.topics:
        stands_where_it_says(world.records, lake, topic, when)


def stands_where_it_says(records: Sequence[Record], lake: Lake, topic: str, when: str) -> None:
    """The real-time view is what the events before the table's offsets come to."""
    try:
        table = lake.table(topic)
    except TableNotFoundError:
        return
    own = [record for record in records if record.topic == topic]
    until = {(topic, partition): offset for partition, offset in table.offsets.items()}
    state = replay(own, until=until).get(topic)
    if state is not None:
        assert compare(state.table(), table.read(), state.key) is None, when


def finish(world: World, lake: Lake) -> None:
    """One more service loses a worker, takes in the rest all the same, and ends when asked to in
    the middle of more.
    """
    with lake.running() as service:
        service.until(lambda: bool(service.workers()), "a worker runs")
        os.kill(service.workers()[0], signal.SIGKILL)
        world.work()
        ends, shop_topics = ends_of(world.records), world.shop.topics
        service.until(lambda: stands_at(lake, ends), "all is taken in", END_SECONDS_MAX)
        service.until(
            lambda: not any(lake.table(t).snapshot.manifest.deltas for t in shop_topics),
            "all is spliced in",
            END_SECONDS_MAX,
        )
        holds_the_truth(world, lake)
        world.work(MUCH)
        stop_in_the_middle(world, lake, service, TIME)


def holds_the_truth(world: World, lake: Lake) -> None:
    """Both views of every table are the database's rows, and the index is sound."""
    for spec, topic in zip(world.shop.tables, world.shop.topics, strict=True):
        table = Table.open(lake.path(topic))
        assert table.snapshot.manifest.parked is None
        for view in ("real_time", "read_optimised"):
            assert compare(world.shop.truth(spec.name), table.read(view), spec.key) is None, view
        assert check(LocalStore(lake.path(topic)), table.snapshot).sound
