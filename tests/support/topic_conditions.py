"""A driver without Spark over a lake on the disk, and a broker that answers for its topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import structlog

from lakesplice.apps.service.batching.table_failures import TableFailures
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.errors import SourceUnavailable
from lakesplice.model.driver_status import TopicCondition
from lakesplice.model.offsets import Offset
from lakesplice.spark.jobs.batch_plan import TaskError
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.service_settings import settings_of

GOODS = "a.shop.goods"


@dataclass
class Broker:
    """Topics of one partition, by name their next offset; answers as `TopicCatalogue`.

    `times_ms` says when the records of a topic were written; those of others, in 1970.
    """

    ends: dict[str, int] = field(default_factory=dict)
    times_ms: dict[str, list[int]] = field(default_factory=dict)
    tells_no_times: bool = False

    @property
    def catalogue(self) -> TopicCatalogue:
        """The broker as what it answers as."""
        return cast(TopicCatalogue, self)

    def matching(self, pattern: str) -> list[str]:
        return sorted(name for name in self.ends if re.fullmatch(pattern, name))

    def describe(
        self, names: Iterable[str], *, without_leader: Collection[str] = ()
    ) -> dict[str, Topic]:
        return {
            name: Topic(name, f"id of {name}", {0: Offset(0)}, {0: Offset(self.ends[name])})
            for name in names
            if name in self.ends
        }

    def newest_ms(self, topics: Iterable[Topic]) -> dict[str, int]:
        if self.tells_no_times:
            raise SourceUnavailable("the broker does not answer")
        return {t.name: self.times_ms[t.name][-1] for t in topics if t.name in self.times_ms}

    def since_in_each(
        self, topics: Iterable[Topic], moment_ms: int
    ) -> dict[str, dict[int, Offset]]:
        written = {t.name: self.times_ms.get(t.name, [0] * self.ends[t.name]) for t in topics}
        return {
            name: {0: Offset(sum(at < moment_ms for at in times))}
            for name, times in written.items()
        }


class Scene:
    """A driver without Spark over a lake on the disk, and the broker that it asks."""

    def __init__(
        self,
        root: Path,
        pattern: str = r"a\..*",
        generation: int = 1,
        schema_topics: SchemaTopics | None = None,
        **topics: int,
    ) -> None:
        settings = settings_of(
            root,
            topic_pattern=pattern,
            tables=[
                {"match": "shop.left", "read": False},
                {"match": "shop.long", "to": f"shop.{'x' * 256}"},
                {"match": "shop.ignored", "schema_changes": {"create_table": "ignore"}},
                {"match": "other.goods", "to": "shop.goods"},
            ],
        )
        self.root, self.clock, self.metrics = root, FixedClock(), Metrics()
        self.lake = LocalStore(root)
        self.broker = Broker({name.replace("_", "."): end for name, end in topics.items()})
        self.driver = Driver(
            settings,
            self.lake,
            self.clock,
            SeededEntropy(1),
            Generation(self.lake, generation),
            self.metrics,
            structlog.get_logger(),
            schema_topics=schema_topics,
        )
        self.tables = ServiceTables(self.driver)
        self.sources = TopicSelection(self.driver, self.tables, self.broker.catalogue)
        self.failures = TableFailures(self.driver)
        self.health = Health(60.0)
        self.reporter = StatusReporter(self.driver, [self.sources], self.health)

    def standing(self, topic: str = GOODS) -> TopicCondition:
        return self.sources.conditions()[topic]

    def table(self, topic: str = GOODS) -> ServiceTable:
        table = self.tables.get(topic)
        assert table is not None
        return table

    def fail(self, error: Exception) -> None:
        self.failures.failed(self.table(), TaskError.of(error))

    def files(self) -> set[Path]:
        return {path for path in self.root.rglob("*") if path.is_file()}
