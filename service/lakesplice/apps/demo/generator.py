"""The demo's source: a thread that keeps the shop busy and produces its events."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from lakesplice.table.protocol.ports import Clock
from lakesplice.testing.producer import EventProducer, create_topics
from lakesplice.testing.shop import Event, Shop

_TICK_SECONDS = 0.1
_PARTITIONS = 3
_STOP_SECONDS = 60.0
# How many events one call gives to the producer: few, so that memory and waits stay small.
_CHUNK_EVENTS = 2_000


@dataclass(frozen=True)
class Produced:
    """What is in Kafka so far: the number of events, and per topic and partition the next
    offset.
    """

    events: int
    ends: dict[tuple[str, int], int]


class Generator:
    """Produces the shop's snapshot, then about `rate` events per second until it is stopped.

    `shop` may be read only before `start` and after `stop`.
    """

    def __init__(self, bootstrap_servers: str, shop: Shop, rate: int, clock: Clock) -> None:
        self.shop = shop
        self._bootstrap_servers = bootstrap_servers
        self._rate = rate
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="demo-generator", daemon=True)
        self._lock = threading.Lock()
        self._events = 0
        self._ends: dict[tuple[str, int], int] = {}
        self._error: Exception | None = None

    @property
    def produced(self) -> Produced:
        """What was acknowledged; raises the error that stopped the thread, if there was one."""
        with self._lock:
            if self._error is not None:
                raise self._error
            return Produced(self._events, dict(self._ends))

    def start(self) -> None:
        """Create the topics and begin."""
        create_topics(self._bootstrap_servers, self.shop.topics, partitions=_PARTITIONS)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the next whole transaction; does nothing if it never began. Blocks."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _work(self) -> None:
        try:
            with EventProducer(self._bootstrap_servers) as producer:
                snapshot = self.shop.snapshot()
                for start in range(0, len(snapshot), _CHUNK_EVENTS):
                    self._produce(producer, snapshot[start : start + _CHUNK_EVENTS])
                self._work_steadily(producer)
        except Exception as error:  # whoever asks what was produced gets it
            with self._lock:
                self._error = error

    def _work_steadily(self, producer: EventProducer) -> None:
        started, made = self._clock.monotonic(), 0
        while not self._stopping.wait(_TICK_SECONDS):
            due = int((self._clock.monotonic() - started) * self._rate) - made
            if due > 0:
                events = self.shop.step(min(due, _CHUNK_EVENTS))
                made += len(events)
                self._produce(producer, events)

    def _produce(self, producer: EventProducer, events: list[Event]) -> None:
        records = producer.produce(events)
        with self._lock:
            self._events += len(records)
            for record in records:
                place = record.topic, record.partition
                self._ends[place] = max(self._ends.get(place, 0), record.offset + 1)
