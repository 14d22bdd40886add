"""Judges the lake's store by the results of a probe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakesplice.planning.diagnosis.finding import Area, Finding, size, span

_AREA = Area("lake")
_SLOW_BYTES = 1 << 20
_SKEW_WARNING, _SKEW_PROBLEM = 60.0, 3_600.0
# A driver publishes its status every ten seconds.
_SILENT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ProbeFacts:
    """What happened to the probe's files in the lake at `address`; all were deleted afterwards.

    `created`: a file with a new name was created. `refused`: creating it again was refused and left
    its content. `winners`: how many of `writers` that created one name at once were told that they
    succeeded. `bytes_per_second` of a file written and read back; `skew_seconds` is how far the
    store's clock is ahead of this machine's.
    """

    address: str
    created: bool
    refused: bool
    winners: int
    writers: int
    bytes_per_second: float
    skew_seconds: float | None


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """The lake's newest driver: its generation, whether it ended regularly, and how long ago its
    status was written.
    """

    generation: int
    running: bool
    silent_seconds: float


def judge_store(probe: ProbeFacts) -> Iterator[Finding]:
    """Judge whether commits are safe in a store, and how fast it is."""
    if not probe.created:
        yield _AREA.problem(
            "put-if-absent",
            "the store refused to create a file under a new name",
            "put-if-absent has to work: see what the store, or a proxy before it, supports",
        )
    elif not probe.refused or probe.winners != 1:
        effect = "replaced a file that was there" if not probe.refused else "let"
        who = "" if not probe.refused else f" {probe.winners} of {probe.writers} writers win"
        yield _AREA.problem(
            "put-if-absent",
            f"the store {effect}{who}",
            "commits would overwrite each other: use a store with conditional writes"
            " (If-None-Match), and no cache or gateway before it that drops them",
        )
    else:
        yield _AREA.ok(
            "put-if-absent", f"honoured at {probe.address}, also by {probe.writers} at once"
        )
    yield _judge_speed(probe.bytes_per_second)
    if probe.skew_seconds is not None:
        yield _judge_skew(probe.skew_seconds)


def _judge_speed(bytes_per_second: float) -> Finding:
    seen = f"{size(bytes_per_second)} a second, written and read back"
    if bytes_per_second >= _SLOW_BYTES:
        return _AREA.ok("throughput", seen)
    return _AREA.warning(
        "throughput", seen, "commits and compactions will be slow: run nearer to the store"
    )


def _judge_skew(seconds: float) -> Finding:
    if abs(seconds) < 1:
        return _AREA.ok("clock", "the store's agrees with this machine's")
    ahead = "ahead of" if seconds > 0 else "behind"
    seen = f"the store's is {span(abs(seconds))} {ahead} this machine's"
    remedy = "let both follow a time server: files are deleted by age, an hour off at most"
    if abs(seconds) >= _SKEW_PROBLEM:
        return _AREA.problem("clock", seen, remedy)
    if abs(seconds) >= _SKEW_WARNING:
        return _AREA.warning("clock", seen, remedy)
    return _AREA.ok("clock", seen)


def judge_driver(driver: DriverFacts | None) -> Finding:
    """Report whether a driver has the lake: a second one would wait for it."""
    if driver is None:
        return _AREA.ok("driver", "none has driven this lake yet")
    ago = span(driver.silent_seconds)
    if not driver.running:
        return _AREA.ok("driver", f"none runs; generation {driver.generation} ended {ago} ago")
    if driver.silent_seconds <= _SILENT_SECONDS:
        return _AREA.ok("driver", f"generation {driver.generation} runs; another one would wait")
    return _AREA.warning(
        "driver",
        f"generation {driver.generation} last reported {ago} ago, and did not end regularly",
        "check whether the service still runs; a new one takes over after a lease",
    )
