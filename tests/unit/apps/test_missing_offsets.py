"""What happens to a table if the broker lost records that it hasn't read, by the settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lakesplice.apps.cli.tables.showing.lake_overview import print_overview
from lakesplice.apps.lake_listing import listing
from lakesplice.apps.service.page.table_answers import table_answers
from lakesplice.errors import MissingOffsetsError
from lakesplice.model.moments import EpochMs
from lakesplice.model.parking import ParkCode
from lakesplice.table.protocol.history import history
from lakesplice.telemetry.catalogue import GAP_RECORDS
from tests.support.simulated import rows_of
from tests.support.simulated_loop import SimulatedService


def service_with(folder: Path, policy: str) -> SimulatedService:
    """A service whose first table has this policy, and the others the default."""
    service = SimulatedService(folder, tables=[{"match": "one.*", "missing_offsets": policy}])
    for at in range(3):
        service.put(at, 1, 2)
    service.run()
    return service


def lose_records(service: SimulatedService, at: int) -> None:
    """Change rows of a table, let the broker forget the changes, and change another row."""
    service.put(at, 1, 2)
    topic = service.sources[at].topic
    topic.forget(topic.ends)
    service.put(at, 3)


def names_of(service: SimulatedService, at: int) -> dict[int, str]:
    return {row["id"]: row["name"] for row in rows_of(service.table(at).store)}


@pytest.mark.slow
def test_a_table_is_parked_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    service = service_with(tmp_path, "park")
    lose_records(service, 0)
    lose_records(service, 1)
    service.put(2, 3)
    service.start_anew()
    service.run()
    parked = [service.table(at).parked for at in range(3)]
    assert [why and why.code for why in parked] == [ParkCode.OFFSETS_GONE] * 2 + [None]
    assert service.metrics.value(GAP_RECORDS, table="one.goods") == 0


@pytest.mark.slow
def test_a_table_continues_with_what_is_there_and_shows_the_gap_until_it_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = service_with(tmp_path, "continue")
    before = names_of(service, 0)
    lose_records(service, 0)
    service.start_anew()
    with capture_logs() as logged:
        service.run()
    table = service.table(0)
    assert table.parked is None
    assert table.next_offsets((0, 1)) == service.sources[0].topic.ends
    after = names_of(service, 0)
    assert {key: after[key] for key in before} == before
    assert after.keys() - before.keys() == {3}
    assert [e["gaps"] for e in logged if e["event"] == "records-passed-over"] == [
        ["0:1-2", "1:1-2"]
    ]
    assert service.metrics.value(GAP_RECORDS, table="one.goods") == 2
    status = service.reporter.status(running=True)
    print_overview(listing(service.lake, status, EpochMs(0)), status, EpochMs(0), "lake")
    assert "one.goods: lacks records that were passed over: 0:1-2, 1:1-2" in capsys.readouterr().out
    shown = table_answers(status.topics, {"one.goods": table}, service.driver.activity, EpochMs(0))
    assert [row.gaps for row in shown] == [["0:1-2", "1:1-2"], [], []]
    told = [entry for entry in history(table.store) if entry.gaps is not None]
    assert [(one.info.operation, one.gaps) for one in told] == [("REDIRECT", "0:1-2, 1:1-2")]
    assert "missing_offsets is continue" in told[0].info.parameters["why"]


@pytest.mark.slow
def test_a_running_query_that_meets_a_loss_is_restarted_behind_it(tmp_path: Path) -> None:
    service = service_with(tmp_path, "continue")
    service.run([lambda: lose_records(service, 0)])
    assert service.lives == 1
    assert service.table(0).parked is None
    assert set(names_of(service, 0)) == {1, 2, 3}
    assert [gap.text for gap in service.table(0).source.gaps] == ["0:1-2", "1:1-2"]


@pytest.mark.slow
def test_the_service_stops_if_the_settings_say_so(tmp_path: Path) -> None:
    service = service_with(tmp_path, "stop")
    with pytest.raises(MissingOffsetsError, match=r"missing_offsets is stop.*one\.goods"):
        service.run([lambda: lose_records(service, 0)])
    assert service.table(0).parked is None
    assert service.table(0).source.gaps == ()


@pytest.mark.slow
def test_a_topic_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    service = service_with(tmp_path, "continue")
    topic = service.sources[0].topic
    topic.forget(topic.ends)
    topic.topic_id, topic._firsts = "topic-2", [0, 0]
    service.put(0, 1, 2, 3)
    service.start_anew()
    service.run()
    table = service.table(0)
    assert table.parked is None
    assert (table.source.topic_id, table.next_offsets((0, 1))) == ("topic-2", topic.ends)
    assert [gap.text for gap in table.source.gaps] == ["0:1-", "1:1-"]
    assert set(names_of(service, 0)) == {1, 2, 3}


def test_a_table_that_is_not_made_yet_begins_behind_the_loss(tmp_path: Path) -> None:
    fresh = SimulatedService(tmp_path, tables=[{"match": "one.*", "missing_offsets": "continue"}])
    fresh.fail_tasks_of(0)
    fresh.put(0, 1, 2)
    fresh.run([*[lambda: None] * 3, lambda: lose_records(fresh, 0), fresh.mend_tasks])
    assert fresh.table(0).parked is None
    assert set(names_of(fresh, 0)) == {3}
    assert [gap.text for gap in fresh.table(0).source.gaps] == ["0:0-2", "1:0-2"]
