"""Every test file has a worker that runs it, and services run in one lane only."""

from __future__ import annotations

import pytest

from tests.support.lanes import Lane, files_in_order, lane_of, scope_of

FILES = [
    "tests/unit/test_a.py",
    "tests/e2e/test_b.py",
    "tests/integration/test_c.py",
    "tests/conformance/test_d.py",
    "tests/crash/test_kills.py",
    "tests/crash/test_e.py",
]


@pytest.mark.parametrize("workers", range(1, 8))
def test_every_file_is_run_and_services_by_a_third_of_the_workers(workers: int) -> None:
    lanes = [lane_of(f"gw{number}", workers) for number in range(workers)]
    assert lanes.count(Lane.SERVICES) == -(-workers // 3)
    assert workers < 2 or lanes[-1] is Lane.REST
    assert workers < 3 or Lane.SERVERS in lanes
    assert sorted(files_in_order(FILES, Lane.SERVICES)) == sorted(FILES)
    for lane in (Lane.SERVERS, Lane.REST):
        assert sorted({*FILES} - {*files_in_order(FILES, lane)}) == [FILES[4], FILES[1]]


def test_each_lane_begins_with_its_own_files_and_helps_with_those_that_others_run_last() -> None:
    assert files_in_order(FILES, Lane.SERVERS)[:2] == [FILES[2], FILES[0]]
    assert files_in_order(FILES, Lane.REST) == [FILES[3], FILES[5], FILES[0], FILES[2]]


def test_files_that_share_a_service_are_one_workers() -> None:
    scopes = {scope_of(f"tests/e2e/together/test_{name}.py::test_c") for name in "ab"}
    assert len(scopes) == 1
    assert files_in_order([*scopes, *FILES], Lane.SERVERS) == files_in_order(FILES, Lane.SERVERS)
    assert scope_of(f"{FILES[1]}::test_c[a::b]") == FILES[1]
