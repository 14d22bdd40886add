"""What the splice is to be, and whether the figures say that it is."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Seconds = Mapping[str, Mapping[str, Mapping[str, float]]]
_UP_TO, _ALL = 20, 23
_MEGABYTES = 300


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim and the worst result for it."""

    text: str
    worst: float
    where: str
    met: bool


def table_aims(grid: Seconds) -> Iterator[Aim]:
    """Yield the aims against Delta's copy-on-write, of cells measured for both."""
    for phase, name, most in (
        ("merge", "merge step", (10, 6, 3)),
        ("whole", "end to end", (5, 3, 2)),
    ):
        kinds: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
            ("at most 3 columns, up to 20 %", lambda s, c: c < _ALL and s <= _UP_TO),
            ("at most 3 columns, 50 %", lambda s, c: c < _ALL and s > _UP_TO),
            ("all columns", lambda _s, c: c == _ALL),
        )
        for (kind, belongs), times in zip(kinds, most, strict=True):
            ratios = {
                cell: grid["delta"][cell]["whole"] / seconds[phase]
                for cell, seconds in grid.get("lakesplice", {}).items()
                if cell in grid.get("delta", {}) and belongs(*_share_and_columns(cell))
            }
            if ratios:
                cell = min(ratios, key=ratios.__getitem__)
                text = f"{name} at least {times} times as fast as Delta: {kind}"
                yield Aim(text, ratios[cell], cell, ratios[cell] >= times)


def peer_aims(ratios: Mapping[str, Mapping[str, float]]) -> Iterator[Aim]:
    """Yield the aim to be faster than every peer, end to end, with at most 3 columns; from each
    peer's ratios to Lakesplice. The contender "copying" isn't a peer.
    """
    of_few = {
        f"{peer} {cell}": ratio
        for peer, cells in ratios.items()
        if peer != "copying"
        for cell, ratio in cells.items()
        if _share_and_columns(cell)[1] < _ALL
    }
    if of_few:
        worst = min(of_few, key=of_few.__getitem__)
        yield Aim(
            "end to end faster than every peer: at most 3 columns",
            of_few[worst],
            worst,
            of_few[worst] > 1,
        )


def memory_aims(found: Sequence[Mapping[str, Any]]) -> Iterator[Aim]:
    """Yield the aim for the memory that a large file takes."""
    worst = max(found, key=lambda one: one["peak_bytes"])
    peak = worst["peak_bytes"] / 1e6
    text = "a file of 2 GB is spliced within 300 MB"
    yield Aim(text, peak, worst["change"], peak < _MEGABYTES)


def file_aims(files: Mapping[str, Any]) -> Iterator[Aim]:
    """Yield the aims for one file and for fifty splices."""
    medians = {
        one["change"]: {way: statistics.median(s) for way, s in one["seconds"].items()}
        for one in files["one_file"]
    }
    small = {
        change: found["splice"] - found["copy"]
        for change, found in medians.items()
        if change.startswith(("one row", "newest 1 %"))
    }
    if small:
        worst = max(small, key=small.__getitem__)
        text = "one row or the newest 1 %: at most 0.2 s more than copying the file"
        yield Aim(text, small[worst], worst, small[worst] <= 0.2)
    against = {change: found["splice"] / found["plain"] for change, found in medians.items()}
    worst = max(against, key=against.__getitem__)
    text = "never slower than 1.1 times the plain rewrite"
    yield Aim(text, against[worst], worst, against[worst] <= 1.1)
    wear = files["wear"]
    more = wear["bytes_worn"] / wear["bytes_fresh"]
    yield Aim(f"after {wear['splices']} splices at most 3 % larger", more, "", more <= 1.03)
    speeds = {
        engine: statistics.median(s["fresh"]) / statistics.median(s["worn"])
        for engine, s in wear["scan_seconds"].items()
    }
    slowest = min(speeds, key=speeds.__getitem__)
    text = f"after {wear['splices']} splices scanned at 0.95 of the speed"
    yield Aim(text, speeds[slowest], slowest, speeds[slowest] >= 0.95)


def _share_and_columns(cell: str) -> tuple[int, int]:
    share, columns, _ = cell.split("-")
    return int(share), int(columns)
