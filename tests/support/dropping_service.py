"""The simulated service beside a topic of schema changes, in which a connector reports DROPs."""

from __future__ import annotations

import structlog

from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.config.sections.schema_topics import SchemaChangeTopicSettings
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedTopic
from tests.support.dropped import Teller
from tests.support.simulated import SMALL, rows_of
from tests.support.simulated_loop import SimulatedService, current_rows

REPORTS = "shop"


class DroppingService(SimulatedService):
    """The service, whose sources may drop their table and create it again."""

    def schema_topics(self) -> SchemaTopics:
        """What reads the topic; the driver has one for each kind of tables."""
        self.broker.topics.setdefault(REPORTS, SimulatedTopic(REPORTS, 1))
        settings = SchemaChangeTopicSettings(names=(REPORTS,))
        return SchemaTopics(settings, self._read, structlog.get_logger())

    def drop(self, at: int) -> None:
        """A source drops its table and creates it again; no event tells of the rows."""
        source, teller = self.sources[at], Teller(self.table(at).name)
        source.database.delete(SMALL.name, [(key,) for key in source.keys])
        place = source.database.drain()[0]
        teller.drop(place)
        teller.create(place)
        told = [Event(REPORTS, None, record, (), place.timestamp_ms) for record in teller.records]
        self.broker.topics[REPORTS].append(0, told)

    def require_rows(self, at: int, *keys: int) -> None:
        """Both tables show these keys as present, with the source's values."""
        history = self.history_of(at)
        assert history is not None
        assert (self.table(at).parked, history.parked) == (None, None)
        rows = rows_of(self.table(at).store)
        assert [row["id"] for row in rows] == list(keys) == sorted(self.sources[at].keys)
        assert current_rows(history.store) == rows

    def _read(
        self, topic: str, ranges: OffsetRanges, mark: str | None
    ) -> list[tuple[int, Offset, bytes | None]]:
        assert (topic, mark) == (REPORTS, None)
        ((at, (start, end)),) = ranges.items()
        events = self.broker.topics[topic].events(at, start)[: end - start]
        return [(at, Offset(start + n), event.value) for n, event in enumerate(events)]
