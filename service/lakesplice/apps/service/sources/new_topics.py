"""Topics without a table, by `schema_changes.create_table`: the table is created, left out, or
parked.
"""

from __future__ import annotations

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.errors import LakespliceError
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot
from lakesplice.telemetry import catalogue as metric

_DETAIL = (
    "the topic has no table yet, and schema_changes.create_table is exception: to create the"
    " table, from the topic's first record on, give `lakesplice unpark`; otherwise leave the"
    " topic out (`read: false` under `tables`, or create_table: ignore)"
)


class NewTopics:
    """Knows which topics are left out, and logs each once; not thread-safe.

    A topic that is left out isn't read. If the configuration later includes it, its table begins
    with what the topic then has; if `lakesplice bootstrap` makes the table, it continues there.
    """

    def __init__(self, driver: Driver, tables: ServiceTables) -> None:
        self._driver = driver
        self._tables = tables
        self._left_out: set[str] = set()

    def leaves_out(self, topic: str) -> bool:
        """Whether the topic has no table and must not get one; blocks on the store, for one look-up
        if it was left out before.
        """
        if topic in self._left_out:
            if not self._was_made(topic):
                return True
            self._left_out.discard(topic)
            self._show()
        if self._tables.get(topic) is not None or not self._is_unwanted(topic):
            return False
        self._left_out.add(topic)
        self._driver.log.warning("table-not-made", topic=topic, setting="create_table: ignore")
        self._show()
        return True

    def _show(self) -> None:
        """Set the metric, which counts topics, and so no history tables beside others."""
        if not self._driver.feeds_histories:
            self._driver.metrics.set(metric.TABLES_NOT_MADE, len(self._left_out))

    def is_filled(self, topic: str) -> bool:
        """Whether the topic's table isn't there yet, and a shadow of it is being filled; blocks on
        the store while there is no table.
        """
        table = self._tables.get(topic)
        if table is not None and table.snapshot is not None:
            return False
        try:
            store = self._store(topic)
            return bool(open_shadows(store)) and find_snapshot(store) is None
        except LakespliceError:
            return False  # the error is reported where its table is opened

    def park_if_refused(self, table: ServiceTable) -> None:
        """Park a table that doesn't exist, if tables may only be created on request."""
        policy = self._driver.settings.policy(table.origin)
        if table.snapshot is None and policy.parks_new_tables:
            table.park(ParkReason(ParkCode.NEW_TABLE, _DETAIL, table.source.topic))

    def _was_made(self, topic: str) -> bool:
        """Whether another writer has created the topic's table: its first version exists."""
        try:
            return self._store(topic).size(commit_path(0)) is not None
        except LakespliceError:
            return False  # the store may answer later

    def _is_unwanted(self, topic: str) -> bool:
        try:
            policy = self._driver.settings.policy(self._tables.names.of(topic))
            return policy.ignores_new_tables and find_snapshot(self._store(topic)) is None
        except LakespliceError:
            return False  # the error is reported where its table is opened

    def _store(self, topic: str) -> Store:
        """Return the folder of the topic's table, whether there is a table or not."""
        driver = self._driver
        return driver.lake.within(driver.settings.target(self._tables.names.of(topic)).path)
