"""The service's JSON is correct, and matches its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakesplice.apps.service.activity import ChangeRate
from lakesplice.apps.service.page.api import OPERATIONS
from lakesplice.apps.service.page.document import openapi_text
from lakesplice.errors import StorageError
from lakesplice.model.driver_status import MirrorStatus, MissingChanges
from lakesplice.model.moments import EpochMs
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.progress.verified import ComparisonOutcome, LastResult
from lakesplice.spark.jobs.rewrites import RewriteTask
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.upkeep.compact import Compacted
from lakesplice.testing.doubles import FixedClock
from tests.support.machine import ROOT
from tests.support.paged import PagedService, busy


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> PagedService:
    return busy(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def service(tmp_path: Path) -> PagedService:
    return busy(tmp_path)


def rows(service: PagedService, **query: Any) -> dict[str, Any]:
    return {row["table"]: row for row in service.get("tables", **query)["tables"]}


@pytest.mark.slow
def test_the_document_is_the_one_that_is_served(served: PagedService) -> None:
    written = (ROOT / "docs" / "openapi.json").read_text()
    assert written == openapi_text(), (
        "python -m lakesplice.apps.service.page.document > docs/openapi.json"
    )
    assert served.get("openapi.json") == json.loads(written)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.path)
@pytest.mark.parametrize("table", ["one/goods", "three/goods", "no/such"])
def test_every_answer_is_as_the_document_describes_it(
    served: PagedService, operation: Any, table: str
) -> None:
    # Here, since importing it takes a second of every worker, and one runs this test.
    from jsonschema import Draft202012Validator

    document = json.loads(openapi_text())
    answer = served.client.get(operation.path.replace("{database}/{table}", table))
    responses = document["paths"][operation.path]["get"]["responses"]
    assert (answer.status_code == 404) == (table == "no/such" and "{table}" in operation.path)
    schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())
    assert answer.headers["cache-control"] == "no-store"


def test_a_table_is_shown_as_it_stands(served: PagedService) -> None:
    table, row = served.table(0), rows(served)["one.goods"]
    manifest, snapshot = table.manifest, table.snapshot
    assert snapshot is not None
    assert manifest.deltas, "something is to wait"
    assert (row["state"], row["topic"], row["path"]) == ("running", table.topic, "one/goods")
    assert (row["version"], row["lag_records"], row["dead_letters"]) == (snapshot.version, 0, 0)
    assert row["rows"] == 20
    assert row["waiting"]["changes"] == sum(sum(d.waiting.values()) for d in manifest.deltas)
    now_ms, fresh = served.clock.now_ms(), table.freshness()
    assert fresh.read_optimised is not None
    assert row["read_optimised_seconds"] == now_ms / 1000 - fresh.read_optimised
    assert row["real_time_seconds"] < row["read_optimised_seconds"]
    goals = row["real_time_goal_seconds"], row["read_optimised_goal_seconds"]
    assert goals == (table.goal.real_time, table.goal.read_optimised)
    assert row["lateness"] == row["read_optimised_seconds"] / table.goal.read_optimised
    unborn = rows(served)["three.goods"]
    assert (unborn["state"], unborn["version"]) == ("waiting", None)
    assert "no change yet" in unborn["reason"]


def test_the_lake_is_the_sum_of_its_tables(served: PagedService) -> None:
    lake = served.get("lake")
    assert lake["topics"] == {"running": 2, "waiting": 1}
    assert lake["waiting"]["changes"] == sum(
        row["waiting"]["changes"] for row in rows(served).values()
    )
    assert lake["drives"]
    batches = lake["batches"]
    assert {batch["result"] for batch in batches} == {"ok"}
    assert sum(batch["records"] for batch in batches) == sum(
        sum(source.topic.ends.values()) for source in served.sources
    )


@pytest.mark.slow
def test_a_parked_table_comes_first_with_its_reason(service: PagedService) -> None:
    table = service.table(1)
    table.park(ParkReason(ParkCode.NO_KEY, "it has no key; token=abc", table.topic))
    service.clock.advance(60)
    service.reporter.tick()
    first = service.get("tables")["tables"][0]
    assert (first["table"], first["state"], first["code"]) == ("two.goods", "parked", "no-key")
    assert first["reason"] == "it has no key; token=********"
    detail = service.get("tables/two/goods")
    assert [topic["state"] for topic in detail["topics"]] == ["parked"]
    assert rows(service, state="parked").keys() == {"two.goods"}


@pytest.mark.slow
def test_a_table_that_misses_its_own_goal_comes_before_an_older_one_that_keeps_it(
    tmp_path: Path,
) -> None:
    goals = {"match": "one.*", "freshness": {"real_time": 7200, "read_optimised": 7200}}
    service = PagedService(tmp_path, "one", "two", tables=[goals])
    service.show()
    service.run([lambda: service.put(0, 1), lambda: service.put(1, 1)])
    service.clock.advance(3600)
    service.reporter.tick()
    shown = service.get("tables", sort="lateness")["tables"]
    assert [(row["table"], row["lateness"] > 1) for row in shown] == [
        ("two.goods", True),
        ("one.goods", False),
    ]
    text = service.client.get("/?sort=lateness").text
    assert "late, goal 15m" in text
    assert "goal 2h" not in text, "only late views are marked"
    assert "goal 2h" in service.client.get("/tables/one/goods").text


def test_tables_are_searched_and_sorted(served: PagedService) -> None:
    def names(**query: Any) -> list[str]:
        return [row["table"] for row in served.get("tables", **query)["tables"]]

    assert names(sort="table") == ["one.goods", "three.goods", "two.goods"]
    assert names(sort="table", order="desc") == ["two.goods", "three.goods", "one.goods"]
    assert names(sort="waiting")[0] == "one.goods"
    assert names(sort="rows", order="asc") == ["three.goods", "two.goods", "one.goods"]
    assert names(search="NO CHANGE yet") == ["three.goods"]
    assert names(search="two") == ["two.goods"]
    assert names(search="nothing like it") == []
    assert served.get("tables", search="two")["all"] == 3


@pytest.mark.parametrize(
    ("path", "query", "status", "told"),
    [
        ("tables", {"sort": "beauty"}, 400, "'attention', 'table'"),
        ("tables", {"order": "up"}, 400, "'asc', 'desc'"),
        ("tables", {"state": "well"}, 400, "'running'"),
        ("tables/one/goods/history", {"limit": "0"}, 400, "from 1 to 200"),
        ("tables/one/goods/history", {"limit": "201"}, 400, "from 1 to 200"),
        ("tables/one/goods/history", {"before": "9" * 19}, 400, "whole number"),
        ("tables/one/goods/history", {"before": "-1"}, 400, "whole number"),
        ("tables/one/none", {}, 404, "no such table"),
        ("tables/_lakesplice/status/history", {}, 404, "no such table"),
        ("none", {}, 404, "Not Found"),
    ],
)
def test_a_request_that_cannot_be_answered_gets_the_reason(
    served: PagedService, path: str, query: dict[str, str], status: int, told: str
) -> None:
    assert told in served.get(path, status, **query)["error"]


def test_the_history_tells_what_a_compaction_copied_and_encoded(served: PagedService) -> None:
    history = served.get("tables/one/goods/history")
    by_operation = {one["operation"]: one for one in history["versions"]}
    splice, ingest = by_operation["SPLICE"], by_operation["INGEST"]
    assert splice["splice"]["pages_copied"] == splice["counts"]["pages_copied"]
    assert splice["splice"]["bytes_encoded"] > 0
    assert ingest["splice"] is None
    assert ingest["sources"][""]["0"] == [0, 4]
    assert history["before"] is None


def test_the_history_is_read_page_by_page(served: PagedService) -> None:
    def pages() -> Iterator[dict[str, Any]]:
        before: str | None = ""
        while before is not None:
            page = served.get("tables/one/goods/history", limit="3", before=before)
            yield page
            before = page["before"]

    found = [one for page in pages() for one in page["versions"]]
    assert found == served.get("tables/one/goods/history")["versions"]
    most = served.get("tables/one/goods/history", limit="200", before="9" * 18)
    assert found == most["versions"]


def test_a_table_has_its_columns(served: PagedService) -> None:
    columns = served.get("tables/one/goods")["columns"]
    assert [(one["name"], one["type"], one["key"]) for one in columns] == [
        ("id", "long", 1),
        ("name", "string", None),
        ("n", "integer", None),
    ]


@pytest.mark.slow
def test_a_damaged_log_fails_one_answer_and_no_other(service: PagedService) -> None:
    (service.folder / "one" / "goods" / commit_path(1)).write_text("{")
    assert "1.json" in service.get("tables/one/goods/history", 503)["error"]
    assert service.get("tables/one/goods")["table"]["table"] == "one.goods"
    assert service.get("tables/two/goods/history")["versions"]


def test_before_it_drives_it_says_what_it_waits_for(tmp_path: Path) -> None:
    service = PagedService(tmp_path)
    service.health.expect("lake", "another driver has the lake")
    lake = service.get("lake")
    assert (lake["drives"], lake["generation"]) == (False, None)
    assert lake["waits_for"] == {"lake": "another driver has the lake"}
    assert service.get("tables") == {"tables": [], "all": 0}
    assert "try again later" in service.get("tables/one/goods", 503)["error"]


@pytest.mark.slow
def test_a_compaction_is_shown_while_it_runs(service: PagedService) -> None:
    seen: list[dict[str, Any]] = []

    def rewrite(_session: object, _tasks: Sequence[RewriteTask]) -> list[Compacted]:
        seen.append({**service.get("lake"), "row": rows(service)["one.goods"]})
        raise StorageError("the disk is full")

    service.compactor._run_rewrites = rewrite
    changes = rows(service)["one.goods"]["waiting"]["changes"]
    service.clock.advance(7200)
    service._compact()
    (work,) = seen[0]["work"]
    assert (work["table"], work["what"], work["changes"]) == ("one.goods", "compaction", changes)
    assert seen[0]["row"]["compaction"] == "compaction"
    row = rows(service)["one.goods"]
    assert (row["compaction"], row["compaction_failure"]) == ("failing", "the disk is full")
    assert service.get("lake")["work"] == []


@pytest.mark.slow
def test_how_a_table_compared_with_its_database_is_shown(service: PagedService) -> None:
    assert rows(service)["one.goods"]["verified"] is None
    found = LastResult(
        "one/goods",
        "t",
        EpochMs(1_767_225_600_000),
        ComparisonOutcome.DIFFERENT,
        rows=9,
        different=2,
        share=0.5,
    )
    why = replace(
        found, folder="two/goods", outcome=ComparisonOutcome.NOT_COMPARED, different=0, reason="Ah"
    )
    service.driver.activity.show_verified({one.folder: one for one in (found, why)})
    assert rows(service)["one.goods"]["verified"] == {
        "outcome": "different", "reason": "", "ended": "2026-01-01T00:00:00Z", "rows": 9,
        "different": 2, "unsettled": 0, "share": 0.5,
    }  # fmt: skip
    pages = [service.client.get(path).text for path in ("/", "/tables/one/goods")]
    assert "differs from its database" in pages[0]
    assert "different, 2 rows in 50 % of it" in pages[1]
    assert "compared with its database: Ah" in service.client.get("/tables/two/goods").text


@pytest.mark.slow
def test_an_iceberg_mirror_is_shown_with_its_version_and_its_failure(service: PagedService) -> None:
    assert rows(service)["one.goods"]["mirror"] is None
    since = EpochMs(service.clock.now_ms() - 90_000)
    service.driver.activity.show_mirror("one.goods", MirrorStatus(0, since, "no answer", since))
    mirror = rows(service)["one.goods"]["mirror"]
    assert (mirror["state"], mirror["version"]) == ("failing", 0)
    assert (mirror["behind_seconds"], mirror["failure"]) == (90, "no answer")
    text = service.client.get("/tables/one/goods").text
    assert "Its Iceberg mirror doesn't follow: no answer" in text.replace("&#39;", "'")
    service.driver.activity.show_mirror("one.goods", None)
    assert rows(service)["one.goods"]["mirror"] is None


@pytest.mark.slow
def test_changes_that_are_missing_are_shown_with_their_number(service: PagedService) -> None:
    assert rows(service)["one.goods"]["missing_changes"] is None
    for changes, moment in ((2, service.clock.now_ms() - 90_000), (1, service.clock.now_ms())):
        found = MissingChanges(changes, EpochMs(moment))
        service.driver.activity.add_missing_changes("one.goods", found)
    assert rows(service)["one.goods"]["missing_changes"]["changes"] == 3
    assert "changes missing" in service.client.get("/").text
    assert "before 3 changes the row" in service.client.get("/tables/one/goods").text


@pytest.mark.slow
def test_a_batch_that_fails_is_shown_as_failed(service: PagedService) -> None:
    service.job.deadly = {source.topic.name for source in service.sources}
    service.run([lambda: service.put(0, 1)])
    last = service.get("lake")["batches"][-1]
    assert last["result"] in ("failed", "partial")


def test_a_rate_is_the_mean_of_its_window() -> None:
    clock = FixedClock()
    rate, seen = ChangeRate(clock, 60.0), []
    for changes, seconds in ((30, 0), (0, 10), (60, 40), (0, 20), (0, 60)):
        clock.advance(seconds)
        rate.add(changes)
        seen.append(rate.per_second)
    assert seen == [None, 3, 90 / 50, 1, 0]
