"""Judges samples of a long run, and draws them: a line per measure, a mark per incident."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from benchmarks.soak.samples import Sample
from benchmarks.splice.plot import text_at

FLAT = (
    "driver_mib",
    "jvm_mib",
    "workers_mib",
    "open_files",
    "threads",
    "series",
    "age_99_percent_s",
)
_SHOWN = {
    "driver_mib": "memory of the driver, MiB",
    "jvm_mib": "memory of Spark's JVM, MiB",
    "workers_mib": "memory of Python workers, MiB",
    "open_files": "open files",
    "threads": "threads",
    "series": "series of the metrics page",
    "scrape_ms": "a scrape, ms",
    "age_median_s": "age of the median table's real-time view, s",
    "age_99_percent_s": "age of the 99 % table's real-time view, s",
    "lag_records": "records not committed yet",
    "waiting_deltas": "deltas that wait for compaction",
    "lake_files": "files of the lake",
    "lake_mib": "bytes of the lake, MiB",
}
_WIDTH, _LEFT, _RIGHT, _HEIGHT, _GAP, _TOP = 900, 70, 20, 90, 40, 50


def growth(samples: Sequence[Sample]) -> dict[str, float]:
    """Return for each measure that is to stay flat its median of the last third over that of the
    middle third.
    """
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    return {
        name: round(median_of(last, name) / max(median_of(middle, name), 1e-9), 3) for name in FLAT
    }


def median_of(samples: Sequence[Sample], name: str) -> float:
    """Return the median of a measure; 0 if no sample has it."""
    return statistics.median([one[name] for one in samples if name in one] or [0.0])


def drawing(title: str, samples: Sequence[Sample], incidents: Mapping[str, float]) -> str:
    """Return an SVG of all measures over the seconds of the run."""
    height = _TOP + len(_SHOWN) * (_HEIGHT + _GAP)
    last = max(one["seconds"] for one in samples)
    parts = [text_at(_LEFT, 28, title, size=16)]
    for at, (name, label) in enumerate(_SHOWN.items()):
        top = _TOP + at * (_HEIGHT + _GAP) + 20
        points = [(one["seconds"], one[name]) for one in samples if name in one]
        if name.startswith("age"):
            # Before its first batch a table counts as old as its first record may be.
            points = [(at, age) for at, age in points if age <= last]
        parts += _chart(top, label, points, last, incidents)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _chart(
    top: float,
    label: str,
    points: Sequence[tuple[float, float]],
    last: float,
    incidents: Mapping[str, float],
) -> list[str]:
    highest = max((value for _, value in points), default=0.0) or 1.0

    def across(seconds: float) -> float:
        return _LEFT + seconds / last * (_WIDTH - _LEFT - _RIGHT)

    def down(value: float) -> float:
        return top + _HEIGHT * (1 - value / highest)

    path = " ".join(f"{across(at):.1f},{down(value):.1f}" for at, value in points)
    parts = [
        text_at(_LEFT, top - 6, label),
        text_at(_LEFT - 6, top + 10, f"{highest:,.0f}", anchor="end"),
        text_at(_LEFT - 6, top + _HEIGHT, "0", anchor="end"),
        text_at(_WIDTH - _RIGHT, top + _HEIGHT + 14, f"{last / 60:.0f} min", anchor="end"),
        f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH - _LEFT - _RIGHT}" height="{_HEIGHT}" '
        'fill="none" stroke="#cccccc"/>',
        f'<polyline points="{path}" fill="none" stroke="#0b6e4f" stroke-width="1.5"/>',
    ]
    for name, seconds in incidents.items():
        x = across(seconds)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + _HEIGHT}" stroke="#d1495b" '
            'stroke-dasharray="3"/>'
        )
        parts.append(text_at(x + 3, top + _HEIGHT + 14, name, size=10))
    return parts
