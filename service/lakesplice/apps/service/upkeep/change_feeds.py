"""Change feeds of the service: they begin and end as the settings of the tables say."""

from __future__ import annotations

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.errors import UsageError


class ChangeFeeds:
    """Switches the feed of one table at a time; two threads never call it for one table."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._refused: set[str] = set()

    def is_due(self, table: ServiceTable) -> bool:
        """Whether a setting asks for another state of the feed than the table has."""
        wanted = table.wants_change_feed
        if wanted is None or table.snapshot is None or str(table.name) in self._refused:
            return False
        return (table.manifest.feed is not None) != wanted

    def see_to(self, table: ServiceTable) -> None:
        """Begin or end the table's feed. A table that can't have one is logged, once."""
        name, wanted = str(table.name), bool(table.wants_change_feed)
        try:
            table.set_change_feed(on=wanted)
        except UsageError as error:
            self._refused.add(name)
            self._driver.log.warning("change-feed-refused", table=name, error=str(error))
        else:
            self._driver.log.info("change-feed", table=name, on=wanted, version=table.version)
