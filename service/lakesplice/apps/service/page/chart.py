"""The last batches as bars: how long each took, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakesplice.apps.service.page.answers import BatchAnswer

_BARS, _STEP, _GAP, _HEIGHT = 60, 10, 2, 60
# A batch that took no time must be visible, too.
_HEIGHT_MIN = 2.0


@dataclass(frozen=True)
class Bar:
    """The bar of a batch; the origin is the upper left corner."""

    x: int
    y: float
    width: int
    height: float
    result: str
    title: str


@dataclass(frozen=True)
class Chart:
    """A picture of batches, the newest at the right end."""

    width: int
    height: int
    title: str
    bars: tuple[Bar, ...]


def chart(batches: Sequence[BatchAnswer]) -> Chart:
    """Draw the last batches; the longest one has the height of the picture."""
    shown = batches[-_BARS:]
    longest = max((batch.seconds for batch in shown), default=0.0)
    first = _BARS - len(shown)
    bars = []
    for at, batch in enumerate(shown, first):
        share = batch.seconds / longest if longest else 0.0
        height = round(max(_HEIGHT_MIN, share * (_HEIGHT - 4)), 1)
        title = f"{batch.began:%H:%M:%S} UTC: {batch.seconds:.2f} s, {batch.result}"
        if batch.records is not None:
            title += f", {batch.records:,} records of {batch.tables} tables"
        bars.append(Bar(at * _STEP, _HEIGHT - height, _STEP - _GAP, height, batch.result, title))
    failed = sum(batch.result != "ok" for batch in shown)
    seconds = sum(batch.seconds for batch in shown)
    mean = seconds / len(shown) if shown else 0.0
    title = (
        f"{len(shown)} batches, {failed} not completely committed; {mean:.2f} s on average,"
        f" the longest {longest:.2f} s"
    )
    return Chart(_BARS * _STEP, _HEIGHT, title, tuple(bars))
