"""The service compares tables with their databases: when, in which order, and what it reports."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakesplice.apps.service.upkeep.verifications import Verifications
from lakesplice.apps.verifying.lake_verification import SourceAccess
from lakesplice.apps.verifying.report import (
    ComparisonOutcome,
    Difference,
    DifferenceKind,
    TableReport,
)
from lakesplice.errors import SourceUnavailable, UsageError
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.table.driver.last_results import keep_result, last_results
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.ports import Clock, Progress
from lakesplice.telemetry import catalogue as metric
from tests.support.service_settings import settings_of
from tests.support.simulated_service import DATABASES, Scene

HOUR = 3_600.0


class Compared:
    """A service's comparisons, in which `find` says what a database answers."""

    def __init__(self, folder: Path, **verify: object) -> None:
        self.scene = Scene(folder, verify={"every": HOUR, **verify})
        for source in self.scene.sources:
            source.topic.append(0, source.put(1))
        self.scene.batch()
        self.find: Callable[[TableName], TableReport] = equal
        self.asked: list[str] = []
        self.start()

    def start(self) -> None:
        """As a restart of the service would."""
        scene = self.scene
        self.verifications = Verifications(scene.driver, scene.tables, self.verify)

    def verify(self, name: TableName, topic: str, clock: Clock, progress: Progress) -> TableReport:
        self.asked.append(name.database)
        report = self.find(name)
        keep_result(self.scene.driver.lake, report.result(topic, clock.now_ms()))
        self.scene.clock.advance(60)
        return report

    def turns(self) -> list[str]:
        """Which tables are compared until none is due."""
        self.asked.clear()
        while self.verifications.turn():
            pass
        return self.asked

    def counted(self, outcome: str) -> float | None:
        return self.scene.metrics.value(metric.VERIFICATIONS, outcome=outcome)


def equal(name: TableName) -> TableReport:
    return TableReport(str(name), ComparisonOutcome.EQUAL, folder=name.path, rows_at_source=1)


def different(name: TableName) -> TableReport:
    wrong = (Difference({"id": "1"}, DifferenceKind.CHANGED),)
    return TableReport(str(name), ComparisonOutcome.DIFFERENT, folder=name.path, differences=wrong)


@pytest.fixture
def compared(tmp_path: Path) -> Compared:
    return Compared(tmp_path)


@pytest.mark.slow
def test_each_table_is_compared_as_often_as_set_the_oldest_first(compared: Compared) -> None:
    assert sorted(compared.turns()) == sorted(DATABASES)
    first = list(compared.asked)
    assert compared.turns() == []
    compared.scene.clock.advance(HOUR - 60 * len(first) - 1)
    assert compared.turns() == []
    compared.scene.clock.advance(1)
    assert compared.turns() == first


@pytest.mark.slow
def test_without_the_setting_nothing_is_compared(tmp_path: Path) -> None:
    assert Compared(tmp_path, every=None).turns() == []


@pytest.mark.slow
def test_a_restarted_service_continues_with_the_table_that_is_next(compared: Compared) -> None:
    assert compared.verifications.turn()
    compared.start()
    rest = compared.turns()
    assert len(rest) == len(DATABASES) - 1
    assert len({compared.asked[0], *rest}) == len(rest)


@pytest.mark.slow
def test_results_are_in_the_history_in_the_metrics_and_on_the_page(compared: Compared) -> None:
    compared.find = different
    assert compared.verifications.turn()
    (database,) = compared.asked
    (table,) = (one for one in compared.scene.tables if one.name.database == database)
    newest = next(iter(history(table.store)))
    assert (newest.info.operation, newest.info.parameters["by"]) == ("VERIFY", "verify.every")
    assert newest.info.metrics["different"] == 1
    assert compared.counted("different") == 1
    assert compared.scene.metrics.value(metric.DIFFERING_ROWS, table=str(table.name)) == 1
    shown = compared.scene.driver.activity.verified[table.name.path]
    assert (shown.outcome, shown.different) == (ComparisonOutcome.DIFFERENT, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [SourceUnavailable("the database doesn't answer", host="h", port=1), ZeroDivisionError("ours")],
    ids=["no answer", "unexpected"],
)
def test_a_comparison_that_fails_is_tried_again_later_and_delays_no_other(
    compared: Compared, error: Exception
) -> None:
    def fails(name: TableName) -> TableReport:
        if name.database == "two":
            raise error
        return equal(name)

    compared.find = fails
    assert sorted(compared.turns()) == sorted(DATABASES)
    assert compared.counted("failed") == 1
    assert {one.folder.partition("/")[0] for one in last_results(compared.scene.lake)} == {
        "one", "three",
    }  # fmt: skip
    compared.find = equal
    compared.scene.clock.advance(60)
    assert compared.turns() == ["two"]


@pytest.mark.slow
def test_a_table_that_can_not_be_compared_shows_why_and_has_no_entry_in_its_history(
    compared: Compared,
) -> None:
    def unknown(_: TableName) -> TableReport:
        raise UsageError("nothing says which database feeds the topic", prefix="one")

    compared.find = unknown
    before = {str(table.name): table.version for table in compared.scene.tables}
    assert len(compared.turns()) == len(DATABASES)
    assert {str(table.name): table.version for table in compared.scene.tables} == before
    shown = compared.scene.driver.activity.verified
    assert all("which database" in one.reason for one in shown.values())
    assert compared.counted("not compared") == len(DATABASES)
    assert compared.turns() == [], "it is asked again when its turn comes"


@pytest.mark.slow
def test_a_parked_table_is_not_compared(compared: Compared) -> None:
    parked = next(iter(compared.scene.tables))
    parked.park(ParkReason(ParkCode.UNSUPPORTED, "why", parked.topic))
    assert sorted([*compared.turns(), parked.name.database]) == sorted(DATABASES)


@pytest.mark.slow
def test_a_comparison_is_interrupted_when_the_service_stops(compared: Compared) -> None:
    begun = threading.Event()

    def endless(name: TableName, topic: str, clock: Clock, progress: Progress) -> TableReport:
        while True:
            begun.set()
            progress.advance(1)
            clock.wait(1.0)

    scene = compared.scene
    verifications = Verifications(scene.driver, scene.tables, endless)
    verifications.start()
    assert begun.wait(60)
    verifications.stop()
    assert last_results(scene.lake) == ()
    assert scene.driver.activity.work == ()


@pytest.mark.slow
def test_rows_are_read_no_faster_than_allowed(tmp_path: Path) -> None:
    compared = Compared(tmp_path, rows_per_second=100)

    def reads(name: TableName, topic: str, clock: Clock, progress: Progress) -> TableReport:
        begun = clock.monotonic()
        for _ in range(10):
            progress.advance(50)
        took.append(clock.monotonic() - begun)
        return equal(name)

    took: list[float] = []
    scene = compared.scene
    Verifications(scene.driver, scene.tables, reads).turn()
    assert took == [pytest.approx(5.0)]


def test_a_topic_is_of_the_connector_whose_prefix_fits_best() -> None:
    databases = {"shop.eu": "mysql://reader@eu:3306", "shop": "mysql://reader@us:3306"}
    sources = SourceAccess(settings_of("lake", verify={"databases": databases}))
    hosts = [sources.address(f"{prefix}.sales.items").host for prefix in ("shop.eu", "shop")]
    assert hosts == ["eu", "us"]
    with pytest.raises(UsageError, match="no setting names the database"):
        sources.address("other.sales.items")
