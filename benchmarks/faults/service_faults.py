"""Faults of the service, its machine and what it reads from, how each is made, and what the runbook
says to do.
"""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

from benchmarks.faults import processes
from benchmarks.faults.demo import PREFIX, SERVICE, Demo
from benchmarks.faults.measuring import Fault

_BROKER, _DATABASE, _SECOND = "the broker", "MariaDB", "a second service"
_HEARTBEATS = f"__debezium-heartbeat.{PREFIX}"
_AHEAD_SECONDS = 1_800
_SCRATCH_MB, _LAKE_MB = 128, 256


def _silent(demo: Demo) -> list[str]:
    """The connectors that the page reports as silent."""
    connectors = demo.ask("lake").get("connectors", [])
    return [one["connector"] for one in connectors if one["is_silent"]]


def _killed_and_started(demo: Demo) -> None:
    """What an orchestrator does if a probe fails and SIGTERM has no effect."""
    demo.end(SERVICE, signal.SIGKILL)
    demo.start(SERVICE)


def _is_java(command: str) -> bool:
    return "java" in command.split(" ")[0]


def _is_worker(command: str) -> bool:
    return "python" in command.split(" ")[0] and "daemon" in command


def _workers_frozen(demo: Demo) -> None:
    demo.freeze(SERVICE, _is_worker)
    demo.insert("shop.customers")


def _second_takes_over(demo: Demo) -> None:
    demo.add_service(_SECOND)
    demo.start(_SECOND)
    demo.until(lambda: demo.ask_second("lake").get("drives") is False, "the second one waits")
    demo.freeze(SERVICE)


def _first_gives_up(demo: Demo) -> None:
    """The first service finds out, and ends; it becomes the standby, and the driver again."""
    pid = demo.pid(SERVICE)
    demo.thaw()
    demo.until(lambda: not processes.is_alive(pid), "the first one ends")
    demo.start(SERVICE)
    demo.until(lambda: demo.ask("lake").get("drives") is False, "the first one waits")
    demo.end(_SECOND)


def _lake_on_small_disk(demo: Demo) -> None:
    demo.end(SERVICE)
    demo.disks.make_small(demo.lake, _LAKE_MB)
    demo.start(SERVICE)
    demo.until_driven()


def _lake_full(demo: Demo) -> None:
    demo.disks.fill(demo.lake)
    demo.insert("shop.customers")


def _scratch(demo: Demo) -> Path:
    return demo.lake.with_name("scratch")


def _scratch_on_small_disk(demo: Demo) -> None:
    folder = _scratch(demo)
    folder.mkdir()
    demo.end(SERVICE)
    demo.disks.make_small(folder, _SCRATCH_MB)
    options = {"spark.local.dir": str(folder)}
    demo.configure("spark", {"driver_memory": "1g", "options": options})
    demo.start(SERVICE, folder_for_temporaries=folder)
    demo.until_driven()


def _scratch_full(demo: Demo) -> None:
    demo.disks.fill(_scratch(demo))
    demo.insert("shop.customers")


def _clock_file(demo: Demo) -> Path:
    return demo.lake.with_name("clock")


def _clock_movable(demo: Demo) -> None:
    file = _clock_file(demo)
    file.write_text("0")
    demo.end(SERVICE)
    demo.start(SERVICE, sys.executable, "-m", "benchmarks.faults.shifted_clock", str(file))
    demo.until_driven()


def _heartbeat_from_the_future(demo: Demo) -> None:
    demo.send(_HEARTBEATS, b"{}", b"{}", ahead_seconds=_AHEAD_SECONDS)
    demo.connector("PUT", "/pause")


_service_down = partial(
    Fault,
    section="/healthz is not 200",
    metric="absent(lakesplice_build_info)",
    alert="LakespliceDown",
    alert_after=420,
    page=lambda demo: not demo.ask("lake").get("drives"),
    probe="shop.customers",
)
_no_batch = partial(
    Fault,
    section="lakesplice_last_batch_age_seconds is well above trigger",
    metric="lakesplice_last_batch_age_seconds > 30",
    alert="LakespliceNoBatch",
    alert_after=420,
    probe="shop.customers",
)
_connector_silent = partial(
    Fault,
    section="lakesplice_connector_event_age_seconds rises",
    metric="lakesplice_connector_event_age_seconds > 30",
    alert="LakespliceConnectorSilent",
    page=lambda demo: bool(_silent(demo)),
    probe="shop.customers",
)

SERVICE_FAULTS = (
    _service_down(
        name="the service is killed",
        provoke=lambda demo: demo.end(SERVICE, signal.SIGKILL),
        mend=lambda demo: demo.start(SERVICE),
    ),
    _no_batch(
        name="the broker is gone",
        provoke=lambda demo: demo.end(_BROKER, signal.SIGKILL),
        page=lambda demo: bool(demo.ask("lake").get("query_failure")),
        mend=lambda demo: demo.start(_BROKER),
    ),
    _connector_silent(
        name="the database is gone",
        provoke=lambda demo: demo.end(_DATABASE, signal.SIGKILL),
        alert_after=120,
        mend=lambda demo: demo.start(_DATABASE),
    ),
    _connector_silent(
        name="the connector is paused",
        provoke=lambda demo: demo.connector("PUT", "/pause"),
        alert_after=1_000,
        mend=lambda demo: demo.connector("PUT", "/resume"),
    ),
    _service_down(
        name="the service is frozen",
        provoke=lambda demo: demo.freeze(SERVICE),
        mend=_killed_and_started,
    ),
    _no_batch(
        name="the service's JVM is frozen",
        provoke=lambda demo: demo.freeze(SERVICE, _is_java),
        page=lambda demo: "main-loop" in demo.ask("lake").get("waits_for", {}),
        mend=_killed_and_started,
    ),
    _no_batch(
        name="the service's workers are frozen",
        provoke=_workers_frozen,
        page=lambda demo: bool(demo.ask("lake").get("is_batch_overdue")),
        mend=_killed_and_started,
    ),
    Fault(
        name="a second driver takes over from one that froze",
        section="lakesplice_driver_generation differs between two pages",
        provoke=_second_takes_over,
        page=lambda demo: bool(demo.ask_second("lake").get("drives")),
        metric="max(lakesplice_driver_generation) > max(lakesplice_driver_generation offset 1m)",
        alert="",
        alert_after=60,
        mend=_first_gives_up,
        probe="shop.customers",
    ),
    Fault(
        name="the lake's disk is full",
        section='lakesplice_topic_state{state="resting"} is 1',
        provoke=_lake_full,
        page=lambda demo: demo.row("shop.customers").get("state") == "resting",
        metric='lakesplice_topic_state{state="resting"} == 1',
        alert="LakespliceTopicRests",
        alert_after=420,
        mend=lambda demo: demo.disks.empty(demo.lake),
        probe="shop.customers",
        prepare=_lake_on_small_disk,
    ),
    _no_batch(
        name="the disk for temporary files is full",
        provoke=_scratch_full,
        page=lambda demo: bool(demo.ask("lake").get("query_failure")),
        mend=lambda demo: demo.disks.empty(_scratch(demo)),
        prepare=_scratch_on_small_disk,
    ),
    Fault(
        name="the service's clock jumps two hours ahead",
        section="lakesplice_clock_difference_seconds is far from 0",
        provoke=lambda demo: _clock_file(demo).write_text("7200"),
        page=lambda demo: bool(demo.ask("lake").get("is_clock_wrong")),
        metric="abs(lakesplice_clock_difference_seconds) > 60",
        alert="LakespliceClockDiffers",
        alert_after=420,
        mend=lambda demo: _clock_file(demo).write_text("0"),
        probe="shop.customers",
        prepare=_clock_movable,
    ),
    _connector_silent(
        name="the connector is paused after a record from the future",
        provoke=_heartbeat_from_the_future,
        alert_after=180,
        mend=lambda demo: demo.connector("PUT", "/resume"),
    ),
)
