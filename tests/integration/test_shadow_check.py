"""A shadow that its topic filled is compared with a real database before it becomes the table; so
is one that the database itself filled.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakesplice.apps.bootstrap.shadow_check import ShadowCheck, why_kept
from lakesplice.apps.bootstrap.source_chunks import LoadBounds, ReadPlan, key_bounds, read_plan
from lakesplice.apps.bootstrap.table_filling import TableFilling
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.newest_image import newest_image
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import SourceConnection, TableChanged
from lakesplice.table.ingest.shadow import begin_shadow, shadow_table
from lakesplice.table.protocol.ports import UNWATCHED
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.mirrored import Mirror
from tests.support.sources import SourceServer


@pytest.fixture
def server(mariadb: SourceServer) -> SourceServer:
    """The run's MariaDB."""
    return mariadb


@pytest.fixture
def mirror(server: SourceServer, tmp_path: Path) -> Iterator[Mirror]:
    found = Mirror(server, f"db_{secrets.token_hex(4)}", tmp_path)
    for key in range(50):
        found.run("insert into items(id, name, stock) values (%s, 'a', %s)", key, key)
    yield found
    found.close()


def replayed(mirror: Mirror) -> tuple[ShadowPlan, SimulatedDriver]:
    """Open a shadow beside the table that begins at the topic's first record."""
    plan = ShadowPlan(
        shadow="1",
        topic=mirror.topic.name,
        topic_id=mirror.topic.topic_id,
        server="",
        database=mirror.database,
        table="items",
        start=BEFORE_ALL,
        created_ms=FixedClock().now_ms(),
        ends=dict.fromkeys(mirror.topic.ends, Offset(0)),
        filled_from=FilledFrom.TOPIC,
    )
    begin_shadow(mirror.store, plan)
    table = shadow_table(mirror.store, plan, FixedClock(), SeededEntropy(9))
    driver = SimulatedDriver(mirror.root, mirror.topic, FixedClock(), SeededEntropy(10), held=table)
    driver.batch()
    return plan, driver


def connected(server: SourceServer, mirror: Mirror) -> SourceConnection:
    address = DatabaseAddress(server.host, server.port, server.user, "", server.password)
    return SourceConnection(address, mirror.clock)


def checked(
    server: SourceServer, mirror: Mirror, plan: ShadowPlan, feed: Callable[[], object]
) -> TableReport:
    check = ShadowCheck(
        lake=mirror.root,
        connect=lambda: connected(server, mirror),
        read_limit=ReadLimit(mirror.clock, 1e9, 1_000),
        wait_seconds=5.0,
    )

    def feed_shadow() -> None:
        feed()

    return check.report(mirror.name, plan, feed_shadow)


def test_a_replay_that_has_every_row_is_equal_and_one_that_lacks_some_says_which(
    server: SourceServer, mirror: Mirror
) -> None:
    mirror.feed()
    mirror.run("update items set name = 'b' where id < 9")
    mirror.run("delete from items where id = 30")
    mirror.feed()
    plan, driver = replayed(mirror)
    assert checked(server, mirror, plan, driver.batch).outcome is ComparisonOutcome.EQUAL
    mirror.unheard("insert into items(id, name) values (1000, 'never sent')")
    report = checked(server, mirror, plan, driver.batch)
    assert report.outcome is ComparisonOutcome.DIFFERENT
    assert "1 rows differ" in why_kept(report)
    assert "id=1000 (missing)" in why_kept(report)


def test_changes_that_are_on_their_way_are_awaited(server: SourceServer, mirror: Mirror) -> None:
    mirror.feed()
    plan, driver = replayed(mirror)
    mirror.run("update items set name = 'b' where id < 9")
    report = checked(server, mirror, plan, driver.batch)  # whoever waits lets them be sent
    assert report.outcome is ComparisonOutcome.EQUAL, report


def test_a_table_read_in_chunks_while_its_rows_change_is_the_source(
    server: SourceServer, mirror: Mirror
) -> None:
    """Whole services do this in nightly tests alone."""
    mirror.unheard("insert into items(id, name) select id + 100, 'older than the topic' from items")
    mirror.run("insert into items(id, name) values (1000, 'a')")
    mirror.feed()
    topic, reading = mirror.topic, RecordReading(table=TableName(mirror.database, "items"))
    newest = newest_image(topic.read(dict.fromkeys(topic.ends, Offset(0)), topic.ends), reading)
    assert newest is not None
    with connected(server, mirror) as connection:
        source = connection.table(mirror.database, "items")
        assert source is not None
        read = read_plan(source, newest.schema)
        assert isinstance(read, ReadPlan)
        found, identity = key_bounds(connection, read, 12), connection.identity()
    assert not isinstance(found, TableChanged)
    start, bounds = found
    plan = ShadowPlan(
        shadow="1",
        topic=topic.name,
        topic_id=topic.topic_id,
        server=identity,
        database=mirror.database,
        table="items",
        start=start,
        created_ms=FixedClock().now_ms(),
        ends=topic.ends,
        bounds=bounds,
    )
    begin_shadow(mirror.store, plan)
    table = shadow_table(mirror.store, plan, FixedClock(), SeededEntropy(9))
    driver = SimulatedDriver(mirror.root, topic, FixedClock(), SeededEntropy(10), held=table)

    def feed() -> None:
        mirror.run("update items set stock = stock + 1 where mod(id, 20) = 7")
        mirror.insert_mark()
        driver.batch()

    filling = TableFilling(
        name=mirror.name,
        table=table,
        plan=plan,
        read_plan=read,
        reading=lambda: reading,
        feed=feed,
        look_again=lambda: read,
        connect=lambda: connected(server, mirror),
        bounds=LoadBounds(connections=2, rows_per_second=10, chunk_rows=12),
        clock=mirror.clock,
        entropy=SeededEntropy(11),
        progress=UNWATCHED,
    )
    thread = threading.Thread(target=filling.fill, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert filling.settle(60)
    assert checked(server, mirror, plan, driver.batch).outcome is ComparisonOutcome.EQUAL
    assert plan.chunks == 9  # the last one is committed alone
