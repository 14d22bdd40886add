"""A real browser without a window: Debian's Chromium, the machine's or unpacked, and its driver."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.debian import unpacked

# Beside other work, a page of 400 tables took more than 30.
_SECONDS_MAX = 120.0
_LAST = "data:,last"
# It asks nobody but the page's own server; what it would ask its maker is switched off.
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


@dataclass(frozen=True)
class Programs:
    """Where the browser and its driver are, and where their libraries."""

    browser: str
    driver: str
    libraries: str = ""

    @classmethod
    def found(cls) -> Programs:
        """Those of the machine, else Debian's, unpacked once; a skip where they can't be had."""
        browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if browser and driver:
            return cls(browser, driver)
        files = unpacked("chromium", ["chromium", "chromium-driver"], needs=True)
        libraries = {str(path.parent) for path in files.glob("usr/lib/*/**/lib*.so*")}
        return cls(
            str(files / "usr/lib/chromium/chromium"),
            str(files / "usr/bin/chromedriver"),
            ":".join(sorted(libraries)),
        )


class Browser:
    """A browser's window, of a width and a colour scheme."""

    def __init__(self, driver: WebDriver) -> None:
        self.driver = driver
        self.leave()  # its own first page had many files

    def open(
        self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False
    ) -> None:
        """Show a page."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(address)

    def leave(self) -> None:
        """Show nothing, and forget what the pages before asked for and complained about.

        A page that was left asks for nothing more, but its last requests may be told late. So a
        request of ours follows them, and once that is told all before it are.
        """
        self.driver.get("about:blank")
        self.run(f"fetch('{_LAST}').catch(() => 0)")
        WebDriverWait(self.driver, _SECONDS_MAX, 0.05).until(lambda _: _LAST in self.asked())
        self.complaints()

    def run(self, script: str) -> Any:
        """Return what a script in the page returns."""
        return self.driver.execute_script(script)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that a CSS selector finds."""
        return list(
            self.run(f"return [...document.querySelectorAll({selector!r})].map(e => e.innerText)")
        )

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def focused(self) -> str:
        """The id of what has the focus."""
        return str(self.run("return document.activeElement.id"))

    def element(self, selector: str) -> Any:
        """The first element that a CSS selector finds."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def until(self, script: str) -> None:
        """Wait until an expression in the page is true."""
        WebDriverWait(self.driver, _SECONDS_MAX, 0.05).until(
            lambda _: self.run(f"return {script}"), f"it never was so: {script}"
        )

    def asked(self) -> list[str]:
        """The addresses that were asked for since this was called last."""
        told = (json.loads(line["message"])["message"] for line in self._log("performance"))
        return [
            str(one["params"]["request"]["url"])
            for one in told
            if one["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What the browser's console has of errors, such as a refused script."""
        return [str(line["message"]) for line in self._log("browser")]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        return list(self.driver.get_log(kind))  # type: ignore[no-untyped-call]  # has no types

    def picture(self, path: Path) -> None:
        """Save what is shown as a PNG."""
        assert self.driver.save_screenshot(str(path))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser that keeps what it knows in `folder`, until the block ends."""
    programs = Programs.found()
    options = ChromeOptions()
    options.binary_location = programs.browser
    for argument in (*_ARGUMENTS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    service = Service(programs.driver, env=_environment(programs, folder))
    driver = WebDriver(options, service)
    try:
        driver.set_page_load_timeout(_SECONDS_MAX)
        yield Browser(driver)
    finally:
        driver.quit()


def _environment(programs: Programs, folder: Path) -> Mapping[str, str]:
    own = {"HOME": str(folder), "SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    if programs.libraries:
        own["LD_LIBRARY_PATH"] = programs.libraries
    return {**os.environ, **own}
