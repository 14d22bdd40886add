"""The page in a real browser, over a service of some tables: by keyboard, on a phone, in the dark.

Nightly there are 400 of them. `--pictures` rewrites the pictures of docs/page.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from lakesplice.apps.service.page import html
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.telemetry.http import WebServer
from tests.support.browser import Browser, browser
from tests.support.machine import ROOT
from tests.support.paged import PagedService, fleet

PICTURES = ROOT / "docs" / "images"
TABLES, TABLES_IN_PICTURES = 60, 400
BATCHES, BATCHES_IN_PICTURES = 3, 14
PHONE: dict[str, Any] = {"width": 375, "height": 812}
TABLE = "/tables/shop_eu/goods"
_TABS_MAX = 60

# WCAG's contrast of each text with what is behind it.
CONTRAST = """
const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const parts = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const back = parts(getComputedStyle(one).backgroundColor);
    if (back.length === 3 || back[3] > 0) return back;
  }
  return [255, 255, 255];
};
const poor = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
  const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) poor.push([element.tagName, texts.currentNode.data.trim(), contrast]);
}
return poor;
"""


@dataclass(frozen=True)
class Site:
    """A service, its page's address, and a browser in front of it."""

    service: PagedService
    url: str
    browser: Browser
    tables: int


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    pictures = pytestconfig.getoption("--pictures")
    batches = BATCHES_IN_PICTURES if pictures else BATCHES
    many = pictures or pytestconfig.getoption("--nightly")
    tables = TABLES_IN_PICTURES if many else TABLES
    with pytest.MonkeyPatch.context() as patch, browser(folder) as shown:
        patch.setattr(html, "_REFRESH_SECONDS", 0.5)
        service = fleet(folder / "lake", batches, tables)
        with WebServer(service.app, "127.0.0.1", 0) as server:
            yield Site(service, server.url, shown, tables)


def tab_to(shown: Browser, script: str) -> None:
    """Press the tabulator until what has the focus, `it`, is as the script says."""
    for _ in range(_TABS_MAX):
        shown.press(Keys.TAB)
        if shown.run(f"const it = document.activeElement; return {script}"):
            return
    raise AssertionError(f"the tabulator doesn't lead to {script}")


def table_names(shown: Browser) -> list[str]:
    return shown.texts(".tables tbody th a[id]")


def test_pictures_are_taken_for_the_documents(
    site: Site, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = PICTURES if request.config.getoption("--pictures") else tmp_path
    shown = site.browser
    looks: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("page", "/", {}),
        ("page-dark", "/?search=shop_&sort=waiting", {"dark": True}),
        ("page-phone", "/?state=parked", {**PHONE, "height": 1250}),
        ("page-table", TABLE, {}),
    )
    for name, path, look in looks:
        shown.open(f"{site.url}{path}", **look)
        shown.picture(folder / f"{name}.png")
        width = struct.unpack(">I", (folder / f"{name}.png").read_bytes()[16:20])
        assert width == (look.get("width", 1280),)


def test_a_table_is_found_and_followed_by_keyboard(site: Site) -> None:
    shown = site.browser
    shown.open(site.url)
    assert len(table_names(shown)) == site.tables
    assert table_names(shown)[:2] == ["shop_pl.goods", "shop_it.goods"], "parked, then resting"
    tab_to(shown, "it.name === 'search'")
    shown.press("crm_")
    shown.until("document.querySelectorAll('.tables tbody tr').length === 20")
    assert "search=crm_" in shown.driver.current_url
    assert shown.run("return document.activeElement.name") == "search"
    tab_to(shown, "it.id === 'table-crm_de/goods'")
    shown.press(Keys.ENTER)
    shown.until("location.pathname === '/tables/crm_de/goods'")
    assert shown.texts("h1") == ["crm_de.goods"]
    tab_to(shown, "it.innerText === 'All tables'")
    shown.press(Keys.ENTER)
    shown.until(f"document.querySelectorAll('.tables tbody tr').length === {site.tables}")


def test_a_heading_sorts_by_keyboard_and_keeps_the_focus(site: Site) -> None:
    shown = site.browser
    shown.open(site.url)
    tab_to(shown, "it.id === 'sort-table'")
    shown.press(Keys.ENTER)
    shown.until("document.querySelector('th[aria-sort=ascending] #sort-table') !== null")
    assert table_names(shown) == sorted(table_names(shown))
    shown.press(Keys.ENTER)
    shown.until("document.querySelector('th[aria-sort=descending] #sort-table') !== null")
    assert table_names(shown) == sorted(table_names(shown), reverse=True)
    assert shown.focused == "sort-table"


def test_the_page_shows_what_is_new_by_itself(site: Site) -> None:
    shown, service = site.browser, site.service
    shown.open(f"{site.url}/?state=parked")
    shown.run("window.mark = 1; document.getElementById('pause').focus()")
    table = service.table(11)
    table.park(ParkReason(ParkCode.NO_KEY, "noticed just now", table.topic))
    service.clock.advance(60)
    service.reporter.tick()
    shown.until("document.getElementById('tables').innerText.includes('noticed just now')")
    assert shown.run("return window.mark") == 1, "it wasn't loaded again"
    assert shown.focused == "pause"
    shown.press(Keys.ENTER)
    assert shown.element("#pause").get_attribute("aria-pressed") == "true"


def test_the_page_says_so_if_its_service_is_gone(site: Site) -> None:
    shown = site.browser
    with WebServer(site.service.app, "127.0.0.1", 0) as server:
        shown.open(server.url)
    shown.until("document.getElementById('trouble').innerText.includes('Not up to date')")


def test_the_page_loads_nothing_from_other_servers_and_no_request_fails(site: Site) -> None:
    shown = site.browser
    shown.leave()
    for path in ("/", TABLE, "/?live=off"):
        shown.open(f"{site.url}{path}")
    asked = [address for address in shown.asked() if not address.startswith("data:")]
    assert len(asked) >= 3
    assert all(address.startswith(f"{site.url}/") for address in asked), asked
    assert shown.complaints() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["/", TABLE])
def test_every_text_stands_out(site: Site, path: str, dark: bool) -> None:
    shown = site.browser
    shown.open(f"{site.url}{path}", dark=dark)
    back = shown.run("return getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") != dark
    assert shown.run(CONTRAST) == []


@pytest.mark.parametrize("path", ["/", TABLE])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(site: Site, path: str) -> None:
    shown = site.browser
    shown.open(f"{site.url}{path}", **PHONE)
    widths = "return [innerWidth, document.documentElement.scrollWidth]"
    assert shown.run(widths) == [375, 375]
    if path == "/":
        wide = "[...document.querySelectorAll('.tables *')].filter(e => e.scrollWidth > 375)"
        assert shown.run(f"return {wide}.length") == 0
        labels = "getComputedStyle(document.querySelector('.tables td'), '::before').content"
        assert shown.run(f"return {labels}") == '"State"'


def test_the_page_can_be_searched_without_a_script(site: Site) -> None:
    shown = site.browser
    shown.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        shown.open(f"{site.url}/?live=off")
        shown.element("input[name=search]").send_keys("billing_jp", Keys.ENTER)
    finally:
        shown.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    shown.until("document.readyState === 'complete' && location.search.includes('billing_jp')")
    assert table_names(shown) == ["billing_jp.goods"]
