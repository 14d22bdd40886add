"""How long a fault takes to be told by the page, the metric and the alert, and to be mended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.faults.alerts import Alerts
from benchmarks.faults.demo import Demo

_STEP_SECONDS = 0.25
_MENDED_SECONDS_MAX = 180.0


@dataclass(frozen=True)
class Fault:
    """A fault of the running demo. `page` and `metric` hold while they tell it; `alert` is the
    name of the alert, empty if there is none, and `alert_after` how many seconds it may take.

    `prepare` is done before, `provoke` makes the fault, and `mend` does what the runbook's section
    says. `probe` is a table into which a row is inserted afterwards, which must arrive. Whatever
    tells it for longer than the fault lasts is said in `stays`.
    """

    name: str
    section: str
    provoke: Callable[[Demo], object]
    page: Callable[[Demo], bool]
    metric: str
    alert: str
    alert_after: float
    mend: Callable[[Demo], object]
    probe: str
    prepare: Callable[[Demo], object] = lambda _: None
    stays: str = ""


def measure(fault: Fault, demo: Demo, alerts: Alerts | None) -> dict[str, Any]:
    """Provoke a fault, and return when it was told, when it was mended, and what went wrong."""
    found: dict[str, Any] = {"fault": fault.name, "section": fault.section, "alert": fault.alert}
    try:
        fault.prepare(demo)
        fault.provoke(demo)
        found |= _told(fault, demo, alerts)
        began = time.monotonic()
        fault.mend(demo)
        found["remedy_seconds"] = round(time.monotonic() - began, 1)
        if not fault.stays:
            demo.until(lambda: _is_content(fault, demo), "the page is content", _MENDED_SECONDS_MAX)
        row = demo.insert(fault.probe)
        demo.until(lambda: demo.has(fault.probe, row), "a new row arrives", _MENDED_SECONDS_MAX)
        found["mended_seconds"] = round(time.monotonic() - began, 1)
    except Exception as error:  # noqa: BLE001  what went wrong is a result, and others follow
        found["problem"] = repr(error)
        demo.thaw()
        demo.disks.mend()
    found["stays"] = fault.stays
    return found


def _is_content(fault: Fault, demo: Demo) -> bool:
    return is_content(demo.ask("lake"), demo.row(fault.probe), still_told=fault.page(demo))


def is_content(lake: dict[str, Any], table: dict[str, Any], *, still_told: bool) -> bool:
    """Whether the page says that all is well: of the service, and of the table that had the fault.

    A page that doesn't answer yet, or doesn't know the table yet, tells of no fault either.
    """
    return bool(lake.get("drives")) and table.get("state") == "running" and not still_told


def _told(fault: Fault, demo: Demo, alerts: Alerts | None) -> dict[str, float | None]:
    began = time.monotonic()
    asked: dict[str, Callable[[], bool]] = {"page_seconds": lambda: fault.page(demo)}
    if alerts is not None:
        asked["metric_seconds"] = lambda: alerts.holds(fault.metric)
    if alerts is not None and fault.alert:
        asked["alert_seconds"] = lambda: fault.alert in alerts.firing()
    told: dict[str, float | None] = dict.fromkeys(asked)
    while time.monotonic() - began < fault.alert_after and None in told.values():
        for what, holds in asked.items():
            if told[what] is None and holds():
                told[what] = round(time.monotonic() - began, 1)
        time.sleep(_STEP_SECONDS)
    return told
