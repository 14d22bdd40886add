"""Durations and sizes as people write them: `5m`, `64MiB`; bare numbers are seconds and bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_BYTES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|B|)")
_DURATION_PATTERN = r"^\s*((\d+(\.\d+)?\s*(ms|s|m|h|d)\s*)+|\d+(\.\d+)?\s*)$"
_SIZE_PATTERN = r"^\s*\d+(\.\d+)?\s*([KMG]i?B|B)?\s*$"
DURATION_HINT = "a duration such as 500ms, 30s, 5m, 2h or 7d"
SIZE_HINT = "a size such as 500000, 64MiB or 2GB"


def seconds_of(text: str) -> float:
    """Return the seconds of `5m`, `1h30m` or a bare number; `ValueError` for anything else."""
    text = text.strip()
    try:
        return float(text)
    except ValueError:
        parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError(f"not {DURATION_HINT}")
    return sum(float(part[1]) * _SECONDS[part[2]] for part in parts)


def bytes_of(text: str) -> int:
    """Return the bytes of `64MiB`, or of a bare number; `ValueError` for anything else."""
    size = _SIZE.fullmatch(text.strip())
    if not size:
        raise ValueError(f"not {SIZE_HINT}")
    return int(float(size[1]) * _BYTES[size[2]])


def duration_text(seconds: float) -> str:
    """Return `seconds`, rounded to milliseconds, in the largest unit that divides it."""
    count = round(seconds * 1000)
    for unit in ("d", "h", "m", "s"):
        size = round(_SECONDS[unit] * 1000)
        if count % size == 0 and (count or unit == "s"):
            return f"{count // size}{unit}"
    return f"{count}ms"


def size_text(count: int) -> str:
    """Return `count` bytes in the largest binary unit that divides it."""
    for unit in ("GiB", "MiB", "KiB"):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{unit}"
    return str(count)


def _seconds(value: Any) -> Any:
    # `yes` must not become one second.
    return seconds_of(str(value)) if isinstance(value, str | bool) else value


def _bytes(value: Any) -> Any:
    return bytes_of(str(value)) if isinstance(value, str | bool) else value


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks a setting's unit, so that bounds and values are printed as they are written."""

    text: Callable[[Any], str]


Seconds = Annotated[
    float,
    Unit(duration_text),
    BeforeValidator(_seconds),
    WithJsonSchema(
        {"type": ["string", "number"], "pattern": _DURATION_PATTERN, "description": DURATION_HINT}
    ),
]
Bytes = Annotated[
    int,
    Unit(size_text),
    BeforeValidator(_bytes),
    WithJsonSchema(
        {"type": ["string", "integer"], "pattern": _SIZE_PATTERN, "description": SIZE_HINT}
    ),
]
