"""How the page writes numbers, sizes, ages and moments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from markupsafe import Markup

from lakesplice.model.moments import age
from lakesplice.model.offsets import OffsetRanges

UNKNOWN = "–"
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")


def number(value: int | None) -> str:
    """Return a whole number with separators between thousands."""
    return UNKNOWN if value is None else f"{value:,}"


def rate(value: float | None) -> str:
    """Return a rate, rounded to significant digits."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def size(value: int | None) -> str:
    """Return a number of bytes in the unit in which it is from 1 to 1,023."""
    if value is None:
        return UNKNOWN
    scaled, unit = float(value), 0
    while scaled >= 1024 and unit < len(_SIZES) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return (
        f"{scaled:,.0f} {_SIZES[unit]}"
        if unit == 0 or scaled >= 10
        else f"{scaled:.1f} {_SIZES[unit]}"
    )


def aged(value: float | None) -> str:
    """Return an age as text."""
    return UNKNOWN if value is None else age(value)


def since(now: datetime, then: datetime) -> str:
    """Return how long ago something was."""
    return age(max(0.0, (now - then).total_seconds()))


def moment(value: datetime | None) -> str:
    """Return a moment of UTC to the second, for machines as well."""
    if value is None:
        return UNKNOWN
    stamp = value.isoformat(timespec="milliseconds")
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M:%S} UTC</time>').format(stamp, value)


def offsets(sources: Mapping[str, OffsetRanges]) -> str:
    """Return how far a version moved in its topics, as `partition:start-end`."""
    texts = []
    for topic, moved in sources.items():
        ranges = " ".join(f"{at}:{start}-{end}" for at, (start, end) in moved.items())
        texts.append(f"{topic} {ranges}".strip())
    return "; ".join(one for one in texts if one)


def counts(values: Mapping[str, int]) -> str:
    """Return a commit's counts, without zeros and without those that have a column of their own."""
    shown = {
        k: v for k, v in values.items() if v and not k.startswith(("pages_", "bytes_c", "bytes_e"))
    }
    return ", ".join(f"{name} {value:,}" for name, value in shown.items())


FILTERS = {
    "number": number,
    "rate": rate,
    "bytes": size,
    "age": aged,
    "since": since,
    "moment": moment,
    "offsets": offsets,
    "counts": counts,
}
