"""What is printed: exact for scripts, harmless for terminals."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from lakesplice.apps.cli.output import json_line, print_table, printable
from lakesplice.model.moments import age


def test_json_keeps_every_value() -> None:
    row = {
        "decimal": Decimal("12.30"),
        "bytes": b"\x00\xff",
        "time": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "date": date(2026, 1, 2),
        "nothing": None,
        "text": "ä\n",
    }
    line = json_line(row)
    assert "\n" not in line
    assert json.loads(line) == {
        "decimal": "12.30",
        "bytes": "AP8=",
        "time": "2026-01-02T03:04:05+00:00",
        "date": "2026-01-02",
        "nothing": None,
        "text": "ä\n",
    }


def test_control_characters_cannot_steer_a_terminal() -> None:
    stream = io.StringIO()
    print_table([{"a": "x\x1b[2J\r\n[bold]y[/bold]"}], ["a"], stream)
    assert "\x1b" not in stream.getvalue()
    assert r"x\x1b[2J\r\n[bold]y[/bold]" in stream.getvalue()


def test_rows_are_not_wrapped_for_a_pipe() -> None:
    stream = io.StringIO()
    print_table([{"a": "x" * 150, "b": "y" * 150}], ["a", "b"], stream)
    assert any("x" * 150 in line and "y" * 150 in line for line in stream.getvalue().splitlines())


def test_long_text_is_cut() -> None:
    assert printable("x" * 1_000) == "x" * 200 + "…"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (59.9, "59s"),
        (61, "1m1s"),
        (3_600, "1h"),
        (3_725, "1h2m"),
        (90_061, "1d1h"),
        (-5, "0ms"),
    ],
)
def test_an_age_is_reported_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert age(seconds) == text
