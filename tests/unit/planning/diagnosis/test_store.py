"""Findings about a lake's store after a probe, and about the lake's driver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakesplice.planning.diagnosis.finding import Verdict
from lakesplice.planning.diagnosis.store import (
    DriverFacts,
    ProbeFacts,
    judge_driver,
    judge_store,
)

GOOD = ProbeFacts(
    address="/lake",
    created=True,
    refused=True,
    winners=1,
    writers=4,
    bytes_per_second=50 << 20,
    skew_seconds=0.0,
)


def verdicts(**changed: Any) -> dict[str, Verdict]:
    return {one.check: one.verdict for one in judge_store(replace(GOOD, **changed))}


def test_a_store_that_honours_put_if_absent_is_right() -> None:
    assert verdicts() == dict.fromkeys(("put-if-absent", "throughput", "clock"), Verdict.OK)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"created": False}, "refused to create a file under a new name"),
        ({"refused": False}, "replaced a file that was there"),
        ({"winners": 2}, "let 2 of 4 writers win"),
        ({"winners": 0}, "let 0 of 4 writers win"),
    ],
)
def test_a_store_that_does_not_would_lose_commits(changed: dict[str, Any], said: str) -> None:
    first = next(judge_store(replace(GOOD, **changed)))
    assert (first.check, first.verdict) == ("put-if-absent", Verdict.PROBLEM)
    assert said in first.seen
    assert first.remedy


def test_a_slow_store_is_a_warning() -> None:
    assert verdicts(bytes_per_second=100_000.0)["throughput"] is Verdict.WARNING


@pytest.mark.parametrize(
    ("skew", "verdict"),
    [
        (0.4, Verdict.OK),
        (-30.0, Verdict.OK),
        (90.0, Verdict.WARNING),
        (-90.0, Verdict.WARNING),
        (7_200.0, Verdict.PROBLEM),
    ],
)
def test_a_stores_clock_may_be_off_by_less_than_an_hour(skew: float, verdict: Verdict) -> None:
    assert verdicts(skew_seconds=skew)["clock"] is verdict


def test_a_store_without_times_is_not_blamed_for_its_clock() -> None:
    assert "clock" not in verdicts(skew_seconds=None)


@pytest.mark.parametrize(
    ("driver", "verdict", "said"),
    [
        (None, Verdict.OK, "none has driven"),
        (DriverFacts(3, running=False, silent_seconds=9_000.0), Verdict.OK, "ended 2.5 hours ago"),
        (DriverFacts(3, running=True, silent_seconds=5.0), Verdict.OK, "another one would wait"),
        (
            DriverFacts(3, running=True, silent_seconds=300.0),
            Verdict.WARNING,
            "last reported 5 min",
        ),
    ],
)
def test_the_driver_is_judged_by_its_last_report(
    driver: DriverFacts | None, verdict: Verdict, said: str
) -> None:
    found = judge_driver(driver)
    assert found.verdict is verdict
    assert said in found.seen
