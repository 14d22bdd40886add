"""What the benchmark of faults takes for the end of a fault."""

from __future__ import annotations

import pytest

from benchmarks.faults.measuring import is_content

DRIVES, RUNS = {"drives": True}, {"state": "running"}


def test_a_fault_is_over_once_the_page_says_that_its_table_runs() -> None:
    assert is_content(DRIVES, RUNS, still_told=False)
    assert not is_content(DRIVES, RUNS, still_told=True)


@pytest.mark.parametrize(
    ("lake", "table"),
    [({}, {}), ({"drives": False}, RUNS), (DRIVES, {}), (DRIVES, {"state": "parked"})],
    ids=["no answer", "a start", "a table not known yet", "a parked table"],
)
def test_a_page_that_says_nothing_yet_tells_of_no_end(
    lake: dict[str, bool], table: dict[str, str]
) -> None:
    assert not is_content(lake, table, still_told=False)
