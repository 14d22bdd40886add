"""Which process each byte of memory is counted for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakesplice.apps.service.tables.gauges import show_memory
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.memory import Process, descendants, resident_bytes
from lakesplice.telemetry.registry import Metrics

STAT = "4242 ({}) S 17 4242 4242 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 123456 77 18446744073709551615"
ON_LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")


@pytest.mark.parametrize("command", ["java", "a b", ") S 1 (", ""])
def test_a_process_is_read_whatever_its_name(command: str) -> None:
    assert Process.from_stat(STAT.format(command)) == Process(4242, 17, command, 77)


def test_only_a_process_and_what_it_started_counts() -> None:
    one, two, three = Process(10, 1, "x", 1), Process(20, 10, "java", 1), Process(5, 20, "y", 1)
    assert descendants([three, one, Process(30, 1, "z", 1), two], 10) == [one, two, three]
    assert descendants([one], 99) == []


@ON_LINUX
def test_a_child_is_a_worker_and_the_driver_is_itself() -> None:
    code = "print('up', flush=True); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        whole, below = resident_bytes(), resident_bytes(child.pid)
        child.communicate(b"\n")
    assert whole["driver"] > 0
    assert whole["workers"] >= below["driver"] > 0


@ON_LINUX
def test_the_page_shows_what_is_held_when_it_is_read() -> None:
    metrics = Metrics()
    metrics.before_page(lambda: show_memory(metrics))
    assert metrics.value(metric.MEMORY, process="driver") == 0
    assert b'lakesplice_memory_resident_bytes{process="driver"}' in metrics.page()
    assert (metrics.value(metric.MEMORY, process="driver") or 0) > 1_000_000
