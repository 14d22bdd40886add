"""A dot plot on a logarithmic scale, as SVG: no library is needed for one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_COLOURS = ("#0b6e4f", "#21a179", "#d1495b", "#8d5a97", "#444444", "#c08400")
_LEFT, _RIGHT, _TOP, _LINE, _BOTTOM = 250, 30, 80, 22, 40
_WIDTH = 900


@dataclass(frozen=True, slots=True)
class Dot:
    """One value of a series, in seconds."""

    series: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the plot and its dots."""

    label: str
    dots: tuple[Dot, ...]


def dot_plot(title: str, lines: Sequence[Line], series: Sequence[str]) -> str:
    """Return the plot; seconds from the power of ten below the least to that above the most."""
    values = [dot.seconds for line in lines for dot in line.dots]
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    height = _TOP + _LINE * len(lines) + _BOTTOM
    colours = dict(zip(series, _COLOURS, strict=False))

    def across(seconds: float) -> float:
        share = (math.log10(seconds) - low) / (high - low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    parts = [text_at(_LEFT, 24, title, size=16), *_legend(colours)]
    for power in range(low, high + 1):
        for step in (1, 2, 5) if power < high else (1,):
            parts += _grid_line(across(step * 10.0**power), f"{step * 10.0**power:g} s", height)
    for at, line in enumerate(lines):
        y = _TOP + _LINE * at + _LINE / 2
        parts.append(text_at(_LEFT - 10, y + 4, line.label, anchor="end"))
        parts += [
            f'<circle cx="{across(dot.seconds):.1f}" cy="{y:.1f}" r="5" '
            f'fill="{colours[dot.series]}"><title>{escape(dot.series)}: {dot.seconds:.2f} s'
            "</title></circle>"
            for dot in line.dots
        ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _legend(colours: dict[str, str]) -> list[str]:
    parts, x = [], 20.0
    for name, colour in colours.items():
        parts.append(f'<circle cx="{x:.0f}" cy="48" r="5" fill="{colour}"/>')
        parts.append(text_at(x + 10, 52, name))
        x += 40 + 7 * len(name)
    return parts


def _grid_line(x: float, label: str, height: int) -> list[str]:
    bottom = height - _BOTTOM
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#dddddd"/>',
        text_at(x, bottom + 18, label, anchor="middle"),
    ]


def text_at(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return a text as an element of an SVG."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
