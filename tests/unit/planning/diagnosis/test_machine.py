"""Findings about a machine: its Java, memory, disks, ports and executors."""

from __future__ import annotations

import pytest

from lakesplice.planning.diagnosis.finding import Verdict
from lakesplice.planning.diagnosis.machine import (
    ExecutorFacts,
    JavaFacts,
    MemoryFacts,
    RoomFacts,
    java_major,
    judge_archive,
    judge_executors,
    judge_java,
    judge_memory,
    judge_port,
    judge_room,
)

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("17.0.15", Verdict.OK),
        ("21", Verdict.OK),
        ("25-ea", Verdict.OK),
        ("16.0.2", Verdict.PROBLEM),
        ("1.8.0_392", Verdict.PROBLEM),
        ("", Verdict.PROBLEM),
        ("unknown", Verdict.WARNING),
    ],
)
def test_spark_needs_java_17(version: str, verdict: Verdict) -> None:
    found = judge_java(JavaFacts(version, "from the PATH", "there is no program `java`"))
    assert found.verdict is verdict
    assert ("JAVA_HOME" in found.remedy) == (verdict is not Verdict.OK)


def test_versions_of_java_before_9_begin_with_1() -> None:
    assert [java_major(text) for text in ("1.8.0_392", "1.8", "11.0.2", "17-internal", "x")] == [
        *(8, 8, 11, 17),
        None,
    ]


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [(8 * GIB, Verdict.OK), (3 * GIB, Verdict.WARNING), (GIB, Verdict.PROBLEM)],
)
def test_heap_and_workers_have_to_fit_into_memory(limit: int, verdict: Verdict) -> None:
    found = judge_memory(MemoryFacts(limit, 2 * GIB, tasks=2))
    assert found.verdict is verdict
    assert "needs some 3.6 GiB" in found.seen


@pytest.mark.parametrize(
    ("free", "verdict"),
    [(20 * GIB, Verdict.OK), (2 * GIB, Verdict.WARNING), (100 * MIB, Verdict.PROBLEM)],
)
def test_a_disk_needs_room(free: int, verdict: Verdict) -> None:
    found = judge_room(RoomFacts("the lake", "/lake", free))
    assert found.verdict is verdict
    assert found.check == "disk for the lake"


def test_a_slow_start_is_no_fault_but_it_is_said_how_to_have_a_quick_one() -> None:
    slow, quick = judge_archive("python -m make"), judge_archive("")
    assert {slow.verdict, quick.verdict} == {Verdict.OK}
    assert "`python -m make`" in slow.seen
    assert "`" not in quick.seen


def test_a_port_in_use_is_no_fault_of_the_running_driver() -> None:
    assert judge_port(9464, is_free=True, driver_runs=False).verdict is Verdict.OK
    assert judge_port(9464, is_free=False, driver_runs=True).verdict is Verdict.OK
    taken = judge_port(9464, is_free=False, driver_runs=False)
    assert taken.verdict is Verdict.WARNING
    assert "metrics.port" in taken.remedy


@pytest.mark.parametrize(
    ("found", "verdict", "said"),
    [
        (["3.11.2", "3.11.9"], Verdict.OK, "2 tasks ran"),
        (["3.12.1"], Verdict.PROBLEM, "3.12.1"),
        ([], Verdict.PROBLEM, "no executor"),
    ],
)
def test_executors_need_the_drivers_python_and_packages(
    found: list[str], verdict: Verdict, said: str
) -> None:
    (one,) = judge_executors(ExecutorFacts("3.11.2"), [ExecutorFacts(f) for f in found])
    assert one.verdict is verdict
    assert said in one.seen


def test_executors_that_lack_a_package_are_a_problem() -> None:
    own = ExecutorFacts("3.11.2")
    (one,) = judge_executors(own, [own, ExecutorFacts("3.11.2", "pyarrow")])
    assert one.verdict is Verdict.PROBLEM
    assert "pyarrow" in one.seen
