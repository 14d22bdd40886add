"""The freshness of a table that is behind when its driver starts.

The previous driver published it. If there is none, the broker knows it: a table that has every
record from before a moment is complete up to that moment. Only a few moments are tried, so a table
may be reported as less fresh than it is, never as fresher.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTables
from lakesplice.errors import LakespliceError
from lakesplice.model.moments import earlier, epoch_seconds
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.table.driver.status import newest_status

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
# Each is a question to the broker about all topics whose freshness is unknown.
_AGES_SECONDS = (
    _MINUTE, 5 * _MINUTE, 15 * _MINUTE, _HOUR, 3 * _HOUR, 12 * _HOUR, 2 * _DAY, 7 * _DAY, 30 * _DAY,
)  # fmt: skip


class PastFreshness:
    """Gives tables their freshness from before the driver's start; blocks on the broker."""

    def __init__(self, driver: Driver, tables: ServiceTables, catalogue: TopicCatalogue) -> None:
        self._driver = driver
        self._tables = tables
        self._catalogue = catalogue
        self._before: Mapping[tuple[str, str], int] | None = None
        self._asked: set[str] = set()

    def set_for(self, topics: Mapping[str, Topic]) -> None:
        """Set the freshness of every table of these topics that has a version, but no known
        freshness yet; each topic is asked about once.
        """
        unknown = {}
        for name, topic in topics.items():
            table = self._tables.get(name)
            if table is None or table.snapshot is None or name in self._asked:
                continue
            if table.freshness().real_time is not None:
                continue
            self._asked.add(name)
            published_ms = self._published().get((name, str(table.name)))
            if published_ms is not None:
                table.note_complete_up_to(epoch_seconds(published_ms))
            else:
                unknown[name] = topic
        self._ask(unknown)

    def _ask(self, unknown: dict[str, Topic]) -> None:
        now_ms = self._driver.clock.now_ms()
        for age in _AGES_SECONDS:
            if not unknown:
                return
            firsts = self._catalogue.since_in_each(list(unknown.values()), earlier(now_ms, age))
            for name, first in firsts.items():
                table = self._tables.get(name)
                if table is not None and table.has_committed(unknown[name].earliest, first):
                    table.note_complete_up_to(epoch_seconds(earlier(now_ms, age)))
                    del unknown[name]
        # Older than every moment that was tried: it is at least that old.
        for name in unknown:
            table = self._tables.get(name)
            if table is not None:
                table.note_complete_up_to(epoch_seconds(now_ms - _AGES_SECONDS[-1] * 1000))

    def _published(self) -> Mapping[tuple[str, str], int]:
        if self._before is None:
            self._before = {}
            with suppress(LakespliceError):
                status = newest_status(self._driver.lake)
                if status is not None:
                    self._before = {
                        (topic.topic, topic.table): topic.real_time_ms
                        for topic in status.topics
                        if topic.real_time_ms is not None
                    }
        return self._before
