"""Ages as people write them."""

from __future__ import annotations

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def age(seconds: float) -> str:
    """Return an age in its two largest units, such as `3h5m`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    rest, parts = int(seconds), []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return "".join(parts[:2])
