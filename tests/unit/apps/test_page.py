"""The pages for people, as text: what they show, and that no name becomes part of them."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from lakesplice.apps.service.activity import ConnectorSighting
from lakesplice.apps.service.page.answers import BatchAnswer
from lakesplice.apps.service.page.chart import chart
from lakesplice.apps.service.page.formatting import rate, size
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.table.protocol.layout import commit_path
from lakesplice.telemetry import catalogue as metric
from tests.support.paged import PagedService, busy

EVIL = "<script>alert('it')</script>&\"'"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> PagedService:
    return busy(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def service(tmp_path: Path) -> PagedService:
    return busy(tmp_path)


class Elements(HTMLParser):
    """Every element of a page, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag in tags]


def page(service: PagedService, path: str, status: int = 200) -> str:
    answer = service.client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return str(answer.text)


def shown(service: PagedService, path: str) -> list[str]:
    """The tables that the page shows, in order."""
    return re.findall(r'id="table-[^"]*" href="[^"]*">([^<]*)<', page(service, path))


PAGES = ("/", "/tables/one/goods", "/tables/three/goods")


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_nothing_from_elsewhere(served: PagedService, path: str) -> None:
    elements = Elements(page(served, path))
    for attributes in elements.all("a", "form", "img", "link", "script", "iframe"):
        for name in ("href", "src", "action"):
            address = attributes.get(name) or ""
            assert not address or address.startswith(("/", "#", "?", "data:,")), address
    policy = served.client.get(path).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_what_its_parts_are(served: PagedService, path: str) -> None:
    text = page(served, path)
    elements = Elements(text)
    assert len(elements.all("h1")) == len(elements.all("main")) == 1
    assert '<html lang="en">' in text
    assert all(attributes.get("scope") for attributes in elements.all("th"))
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    names = {attributes[key] for _, attributes in elements.found for key in ("aria-labelledby",)
             if key in attributes}  # fmt: skip
    assert names <= set(ids)
    assert all(attributes.get("role") or attributes.get("class") != "scroll"
               for attributes in elements.all("div"))  # fmt: skip


@pytest.mark.slow
def test_tables_are_searched_and_sorted_without_a_script(served: PagedService) -> None:
    assert shown(served, "/?sort=table") == ["one.goods", "three.goods", "two.goods"]
    assert shown(served, "/?sort=table&order=desc")[0] == "two.goods"
    assert shown(served, "/?search=no+change") == ["three.goods"]
    assert shown(served, "/?state=running&sort=waiting") == ["one.goods", "two.goods"]
    assert "No table is like that" in page(served, "/?search=none+such")
    headings = Elements(page(served, "/?sort=lag&search=one")).all("a")
    (again,) = [one["href"] for one in headings if one.get("id") == "sort-lag"]
    assert again == "/?search=one&sort=lag&order=asc"
    (sorted_,) = [
        one for one in Elements(page(served, "/?sort=lag")).all("th") if one.get("aria-sort")
    ]
    assert sorted_["aria-sort"] == "descending"


def test_without_a_script_it_comes_again_by_itself_until_it_is_paused(
    served: PagedService,
) -> None:
    again = '<noscript><meta http-equiv="refresh"'
    assert again in page(served, "/")
    assert again not in page(served, "/?live=off")


def test_a_table_has_its_history_and_its_schema(served: PagedService) -> None:
    text = page(served, "/tables/one/goods")
    splice = next(
        one for one in served.get("tables/one/goods/history")["versions"] if one["splice"]
    )
    row = re.search(rf'<th scope="row" class="n">{splice["version"]}</th>.*?</tr>', text, re.DOTALL)
    assert row is not None
    cells = [unescape(cell) for cell in re.findall(r'<td class="n">([^<]*)</td>', row.group())]
    told = splice["splice"]
    assert cells[:2] == [str(told["pages_copied"]), str(told["pages_encoded"])]
    assert cells[2:] == [size(told["bytes_copied"]), size(told["bytes_encoded"])]
    assert "0:0-4 1:0-4" in text
    assert '<th scope="row">name</th><td>string</td>' in text
    assert "It has no version yet" in page(served, "/tables/three/goods")


@pytest.mark.slow
def test_a_long_history_is_shown_in_parts(service: PagedService) -> None:
    service.run([lambda: service.put(0, *range(9)) for _ in range(30)])
    text = page(service, "/tables/one/goods")
    (older,) = [one["href"] for one in Elements(text).all("a") if "before=" in (one["href"] or "")]
    rest = page(service, f"/tables/one/goods{older}")
    versions = [re.findall(r'<th scope="row" class="n">(\d+)<', one) for one in (text, rest)]
    assert len(versions[0]) == 25
    assert int(versions[1][0]) == int(versions[0][-1]) - 1


@pytest.mark.slow
def test_a_reason_is_shown_as_text_and_without_secrets(service: PagedService) -> None:
    table = service.table(1)
    detail = f"{EVIL} at jdbc:mysql://joe:hunter2@db"
    table.park(ParkReason(ParkCode.NO_KEY, detail, table.topic))
    service.clock.advance(60)
    service.reporter.tick()
    for path in ("/", "/tables/two/goods"):
        text = page(service, path)
        assert "hunter2" not in text
        assert "<script>alert" not in text
        assert EVIL in unescape(text)
    assert "<img" not in page(service, f"/tables/x/{quote('<img src=x>')}", 404)


@pytest.mark.slow
def test_a_page_that_cannot_be_shown_says_why(service: PagedService) -> None:
    assert "no such table" in page(service, "/tables/no/goods", 404)
    assert "whole number" in page(service, "/tables/one/goods?before=x", 400)
    (service.folder / "one" / "goods" / commit_path(1)).write_text("{")
    text = page(service, "/tables/one/goods")
    assert "The history can't be read" in text
    assert '<th scope="row">name</th>' in text


@pytest.mark.slow
def test_a_table_whose_first_batch_is_awaited_has_no_age(tmp_path: Path) -> None:
    service = PagedService(tmp_path, "one")
    service.show()
    service.fail_tasks_of(0)
    service.put(0, 1)
    service.run([lambda: None])
    for path in ("/", "/tables/one/goods"):
        assert page(service, path).count("no batch yet") == 2, "once for each view"
    service.mend_tasks()
    service.run([lambda: None])
    for path in ("/", "/tables/one/goods"):
        assert "no batch yet" not in page(service, path)


@pytest.mark.slow
def test_a_broker_that_is_away_is_shown_until_it_is_back(service: PagedService) -> None:
    seen: list[str] = []

    def look() -> None:
        seen.append(page(service, "/"))

    service.run([service.broker_goes, *[lambda: None] * 6, look, service.broker_comes])
    assert "No batch can run: the broker does not answer" in seen[0]
    assert "No batch can run" not in page(service, "/")


@pytest.mark.slow
def test_a_connector_without_its_heartbeats_is_shown_as_silent(service: PagedService) -> None:
    activity, now_ms = service.driver.activity, service.clock.now_ms()
    beating, quiet = (ConnectorSighting(name, name == "one", now_ms) for name in ("one", "two"))
    activity.show_connectors((beating, quiet))
    assert "since connector one wrote" in page(service, "/")
    assert "not even a heartbeat" not in page(service, "/")
    service.clock.advance(121)
    assert re.findall("connector (\\w+) has written nothing for 2m", page(service, "/")) == ["one"]


@pytest.mark.slow
def test_a_service_without_batches_is_shown_as_overdue(service: PagedService) -> None:
    service.driver.activity.batch_ended(service.clock.now_ms())
    trigger = service.driver.settings.trigger
    service.clock.advance(3 * trigger)
    assert "since a batch ended" in page(service, "/")
    assert "No batch has ended" not in page(service, "/")
    service.clock.advance(1)
    assert "No batch has ended for " in page(service, "/")


def test_a_service_whose_first_batch_never_comes_is_overdue_too(tmp_path: Path) -> None:
    service = PagedService(tmp_path, "one")
    service.put(0, 1)
    service.broker_goes()
    began = service.clock.now_ms()
    service.run([lambda: None])
    activity, metrics = service.driver.activity, service.driver.metrics
    assert activity.last_batch_ms == began
    assert metrics.value(metric.LAST_BATCH) is not None


@pytest.mark.slow
def test_a_store_whose_clock_differs_is_told_on_the_page(service: PagedService) -> None:
    service.driver.activity.show_clock_difference(-59)
    assert "clock" not in page(service, "/")
    service.driver.activity.show_clock_difference(-61)
    assert "store is 1m1s behind this machine's" in page(service, "/")


@pytest.mark.slow
def test_before_it_drives_it_says_what_it_waits_for(tmp_path: Path) -> None:
    service = PagedService(tmp_path)
    service.health.expect("lake", "another driver has the lake")
    assert "lake: another driver has the lake" in page(service, "/")
    assert "try again later" in page(service, "/tables/one/goods", 503)


def test_a_chart_has_a_bar_for_each_batch_with_the_newest_at_its_end() -> None:
    def batch(seconds: float, result: str = "ok") -> BatchAnswer:
        return BatchAnswer.model_validate(
            {"began": 0, "seconds": seconds, "records": 3, "tables": 1, "result": result}
        )

    drawn = chart([batch(1), batch(4), batch(2, "failed")])
    assert [bar.x + bar.width for bar in drawn.bars][-1] <= drawn.width
    assert [bar.result for bar in drawn.bars] == ["ok", "ok", "failed"]
    heights = [bar.height for bar in drawn.bars]
    assert heights[1] == max(heights) == 4 * heights[0] == 2 * heights[2]
    assert drawn.height - heights[1] == 4
    assert "3 records of 1 tables" in drawn.bars[0].title
    assert all(bar.y + bar.height == drawn.height for bar in drawn.bars)
    assert "3 batches, 1 not completely committed" in drawn.title
    assert chart([batch(0)]).bars[0].height > 0
    assert chart([]).bars == ()
    assert len(chart([batch(1)] * 90).bars) == 60


def test_numbers_are_written_for_people() -> None:
    assert [size(n) for n in (None, 0, 1023, 1024, 15 << 20, 3 << 50)] == [
        "–", "0 bytes", "1,023 bytes", "1.0 KiB", "15 MiB", "3,072 TiB",
    ]  # fmt: skip
    assert [rate(n) for n in (None, 0.0, 0.0712, 3.14, 41_234.5)] == [
        "–", "0", "0.071", "3.1", "41,234",
    ]  # fmt: skip
