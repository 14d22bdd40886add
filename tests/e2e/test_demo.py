"""The demo as a user runs it: a process of its own, whole or interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import machine, short_jvms

COMMAND = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()", "demo"]
SECONDS_MAX = 300.0
LEFT_SECONDS_MAX = 20.0
TABLES = 5


@pytest.fixture
def start(tmp_path: Path, broker_jars: list[Path]) -> Callable[..., subprocess.Popen[str]]:
    """Start `lakesplice demo` in a session of its own, as a terminal would."""

    def demo(*arguments: str) -> subprocess.Popen[str]:
        source = str(machine.ROOT / "service")
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        return subprocess.Popen(
            [*COMMAND, "--folder", str(tmp_path / "demo"), *arguments],
            env={**os.environ, **short_jvms.environment(), "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return demo


def test_the_demo_ends_with_every_view_equal_to_the_truth(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    with start("--seconds", "8") as process:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, output
    assert output.count("equal") == 2 * TABLES, output
    assert "differs" not in output
    assert "Traceback" not in output
    assert f"lakesplice read {tmp_path / 'demo' / 'lake' / 'shop' / 'orders'}" in output


# While it is watched everything runs that has to be stopped; earlier there is less of it.
@pytest.mark.parametrize(
    "step",
    [
        pytest.param("1. starting", marks=pytest.mark.nightly),
        pytest.param("3. starting", marks=pytest.mark.nightly),
        "4. watching",
    ],
)
def test_an_interrupted_demo_stops_all_that_it_started(
    start: Callable[..., subprocess.Popen[str]], step: str, tmp_path: Path
) -> None:
    with start("--seconds", "60") as process:
        guard = threading.Timer(SECONDS_MAX, process.kill)
        guard.start()
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith(step):
                if "watching" in step:
                    require_page(seen)
                os.killpg(process.pid, signal.SIGINT)
        status = process.wait(SECONDS_MAX)
        guard.cancel()
    output = "".join(seen)
    assert status == 130, output
    assert "Traceback" not in output
    # A worker of Python's that was just forked sees a moment later that its parent is gone.
    deadline, pause = time.monotonic() + LEFT_SECONDS_MAX, threading.Event()
    while left := _left_by(process.pid, tmp_path):
        assert time.monotonic() < deadline, left
        pause.wait(0.1)


def require_page(output: list[str]) -> None:
    """The page that the demo names shows its tables, to people and to programs."""
    (url,) = re.findall(r"page: (http\S+)", "".join(output))
    deadline, pause = time.monotonic() + SECONDS_MAX, threading.Event()
    for address in (url, f"{url}api/v1/tables"):
        while b"shop.orders" not in _answer(address):
            assert time.monotonic() < deadline, address
            pause.wait(0.1)


def _answer(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return bytes(answer.read())


def test_a_folder_with_something_else_in_it_is_left_alone(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    precious = tmp_path / "demo" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("mine")
    with start() as process:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 2
    assert "--folder" in output
    assert precious.read_text() == "mine"


def _left_by(session: int, folder: Path) -> list[str]:
    """Processes of the demo's session, and the broker, whose command line names the folder."""
    listing = subprocess.run(
        ["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 2) for line in listing.stdout.splitlines()]
    return [
        args
        for sid, state, args in lines
        if (sid == str(session) or str(folder) in args) and not state.startswith("Z")
    ]
