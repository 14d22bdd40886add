"""No thread ends in silence. An error that nobody expected is logged and counted, and the thread
goes on; or the error reaches whoever waits for the thread.
"""

from __future__ import annotations

import ast
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from structlog.testing import capture_logs

from lakesplice.apps.demo.generator import Generator
from lakesplice.apps.doctor.lake import _winners
from lakesplice.apps.service.service import Service
from lakesplice.apps.service.threads import ThreadErrors, run_beside, run_interruptibly
from lakesplice.apps.service.upkeep import mirrors, verifications
from lakesplice.apps.service.upkeep.compactor import Compactor
from lakesplice.apps.service.upkeep.mirrors import Mirrors
from lakesplice.apps.service.upkeep.verifications import Verifications
from lakesplice.config import Settings
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.storage.system import SystemClock
from lakesplice.table.driver.generation import Generation, take_generation
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry import http as web
from lakesplice.telemetry.endpoints import application, endpoints
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.http import WebServer
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.faulty_store import Call, FaultyStore
from lakesplice.testing.shop import Shop
from tests.support.machine import ROOT
from tests.support.simulated_service import Scene

PACKAGE = ROOT / "service" / "lakesplice"
SECONDS_MAX = 30.0
POLL_SECONDS = 0.05
TIMES = 2


class Defect(Exception):
    """What nobody expected."""


class Failing:
    """Fails the first times; `went_on` is set by a call after them."""

    def __init__(self) -> None:
        self.left = TIMES
        self.went_on = threading.Event()

    def __call__(self, *_: object) -> None:
        if self.left:
            self.left -= 1
            raise Defect
        self.went_on.set()

    def beat(self, call: Call) -> None:
        """Fail if a heartbeat is written."""
        if call.method == "put_new" and "heartbeats" in call.path:
            self()


class FailingClock(FixedClock):
    failing: Callable[[], None]

    def now_ms(self) -> EpochMs:
        self.failing()
        return super().now_ms()


def run_compactor(scene: Scene, failing: Failing, _: ThreadErrors) -> Callable[[], None]:
    scene.put(1)
    scene.batch()
    clock = FailingClock()
    clock.failing = failing
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    compactor = Compactor(replace(scene.driver, clock=clock), scene.tables, session)
    compactor.start()
    return compactor.stop


def run_verifier(scene: Scene, failing: Failing, _: ThreadErrors) -> Callable[[], None]:
    lake = FaultyStore(scene.lake, before_call=failing)
    verifier = Verifications(replace(scene.driver, lake=lake), scene.tables)
    verifier.start()
    return verifier.stop


def run_mirrors(scene: Scene, failing: Failing, _: ThreadErrors) -> Callable[[], None]:
    scene.put(1)
    scene.batch()
    generation = Generation(FaultyStore(scene.lake, before_call=failing), 1)
    running = Mirrors(replace(scene.driver, generation=generation), scene.tables)
    running.start()
    return running.stop


def run_heartbeat(scene: Scene, failing: Failing, errors: ThreadErrors) -> Callable[[], None]:
    generation = take_generation(
        FaultyStore(scene.lake, before_call=failing.beat),
        SystemClock(),
        lambda _: False,
        unexpected=partial(errors.report, "heartbeat"),
        lease_seconds=4 * POLL_SECONDS,
    )
    assert generation is not None
    return generation.release


def run_web(_: Scene, failing: Failing, errors: ThreadErrors) -> Callable[[], None]:
    app = application(endpoints(Metrics(), Health(60.0)))
    server = WebServer(app, "127.0.0.1", 0, partial(errors.report, "web"))
    server.start()
    assert failing.went_on.wait(SECONDS_MAX)
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=SECONDS_MAX) as answer:
        assert answer.status == 200
    return server.close


GO_ON = {
    "compactor": run_compactor,
    "verifier": run_verifier,
    "mirrors": run_mirrors,
    "heartbeat": run_heartbeat,
    "web": run_web,
}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(
        tmp_path, verify={"every": 3_600.0}, compaction={"threads": 1, "poll_seconds": 0.05}
    )


@pytest.mark.parametrize("thread", GO_ON)
def test_a_thread_goes_on_after_errors_that_nobody_expected_and_each_is_logged_and_counted(
    scene: Scene, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, serve = Failing(), uvicorn.Server.main_loop

    async def fails(server: uvicorn.Server) -> None:
        failing()
        await serve(server)

    monkeypatch.setattr(uvicorn.Server, "main_loop", fails)
    monkeypatch.setattr(web, "_RESTART_SECONDS", POLL_SECONDS)
    monkeypatch.setattr(verifications, "_POLL_SECONDS", POLL_SECONDS)
    monkeypatch.setattr(mirrors, "_POLL_SECONDS", POLL_SECONDS)
    with capture_logs() as logged:
        stop = GO_ON[thread](scene, failing, scene.driver.errors)
        assert failing.went_on.wait(SECONDS_MAX)
        stop()
    assert scene.metrics.value(metric.THREAD_ERRORS, thread=thread) == TIMES
    seen = [line for line in logged if line["event"] == "thread-failed"]
    assert [(line["thread"], type(line["exc_info"])) for line in seen] == [(thread, Defect)] * TIMES


def test_a_web_server_that_ends_by_itself_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    serve, ends_by = uvicorn.Server.main_loop, [None, SystemExit(3)]
    serves, seen = threading.Event(), list[str]()

    async def ends(server: uvicorn.Server) -> None:
        if not ends_by:
            serves.set()
            await serve(server)
        elif (error := ends_by.pop()) is not None:
            raise error

    monkeypatch.setattr(uvicorn.Server, "main_loop", ends)
    monkeypatch.setattr(web, "_RESTART_SECONDS", POLL_SECONDS)
    app = application(endpoints(Metrics(), Health(60.0)))
    with WebServer(app, "127.0.0.1", 0, lambda e: seen.append(type(e).__name__)) as server:
        assert serves.wait(SECONDS_MAX)
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=SECONDS_MAX) as answer:
            assert answer.status == 200
    assert seen == ["SystemExit", "RuntimeError"]


def settings(folder: Path) -> Settings:
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": ".*"}
    given = {"kafka": kafka, "lake": {"root": str(folder)}, "metrics": {"enabled": False}}
    return Settings.model_validate(given)


def test_workers_that_do_not_start_are_seen_unless_the_service_is_over(scene: Scene) -> None:
    over = threading.Event()
    for _ in range(2):
        run_beside(Failing(), "workers", scene.driver.errors, over).join(SECONDS_MAX)
        over.set()
    assert scene.metrics.value(metric.THREAD_ERRORS, thread="workers") == 1


def test_an_error_of_the_main_thread_ends_the_service_and_reaches_who_waits_for_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "lake").write_bytes(b"no folder")
    service = Service(settings(tmp_path / "lake"))
    service.begin()
    assert service.wait(SECONDS_MAX)
    with pytest.raises(Exception, match="lake"):
        service.stop()


def test_an_error_of_long_work_reaches_the_main_loop() -> None:
    def work() -> None:
        raise Defect

    with pytest.raises(Defect):
        run_interruptibly(work, "work", lambda: None, threading.Event())


def test_the_end_of_any_other_thread_is_logged_and_counted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", scene.driver.errors.report_unhandled)
    with capture_logs() as logged:
        ends = threading.Thread(target=Failing())
        ends.start()
        ends.join(SECONDS_MAX)
    assert scene.metrics.value(metric.THREAD_ERRORS, thread="other") == 1
    assert [line["event"] for line in logged] == ["thread-failed"]


def test_an_error_of_the_demos_source_reaches_who_asks_what_it_produced() -> None:
    generator = Generator("127.0.0.1:no-port", Shop(1), 1, FixedClock())
    generator._thread.start()
    generator._thread.join(SECONDS_MAX)
    with pytest.raises(ValueError, match="no-port"):
        _ = generator.produced


def test_an_error_of_the_doctors_writers_is_no_lost_race(tmp_path: Path) -> None:
    def fail(_: Call) -> None:
        raise Defect

    with pytest.raises(Defect):
        _winners(FaultyStore(LocalStore(tmp_path), before_call=fail), "race")


STARTED = {
    "apps/demo/generator.py": "its error is raised by `produced`",
    "apps/doctor/lake.py": "its error is raised after all are joined",
    "apps/doctor/step_runner.py": "errors are findings",
    "apps/service/service.py": "the main thread; see above",
    "apps/service/threads.py": "its error is reported, or raised to the main loop",
    "apps/service/upkeep/compactor.py": "see `GO_ON`",
    "apps/service/upkeep/mirrors.py": "see `GO_ON`",
    "apps/service/upkeep/verifications.py": "see `GO_ON`",
    "table/driver/generation.py": "see `GO_ON`",
    "telemetry/http.py": "see `GO_ON`",
}
"""Where threads are started, and how an error in them is seen; executors are below."""


def calls(*names: str) -> list[tuple[str, ast.Call, bool]]:
    """The calls of such functions in the package: its module, and whether its result is dropped."""
    found, ends = [], tuple(f".{name}" for name in names)
    for path in sorted(PACKAGE.rglob("*.py")):
        module, source = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        if module.startswith("testing/") or not any(f"{name}(" in source for name in names):
            continue
        nodes = list(ast.walk(ast.parse(source)))
        dropped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        found += [
            (module, node, id(node) in dropped)
            for node in nodes
            if isinstance(node, ast.Call) and f".{ast.unparse(node.func)}".endswith(ends)
        ]
    return found


@pytest.mark.slow
def test_every_thread_that_is_started_is_one_of_these() -> None:
    starts = ("Thread", "Timer", "Process", "start_new_thread", "run_in_executor", "create_task")
    assert {module for module, _, _ in calls(*starts)} == STARTED.keys()


@pytest.mark.slow
def test_nobody_drops_the_result_of_a_task_and_with_it_its_error() -> None:
    tasks = [(module, dropped) for module, _, dropped in calls("submit", "pool.map")]
    assert len(tasks) > 5
    assert not [module for module, dropped in tasks if dropped]
