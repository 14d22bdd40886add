"""How results are shown: a table for people, one JSON object per line for scripts."""

from __future__ import annotations

import inspect
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from lakesplice.model.moments import age

if TYPE_CHECKING:
    from lakesplice.apps.table_commands.command_table import CommandResult

Row = Mapping[str, Any]
_CELL_CHARS_MAX = 200
_WIDTH_WITHOUT_TERMINAL = 10_000


class Listing(StrEnum):
    """Formats of a listing."""

    TABLE = "table"
    JSON = "json"


ListingOption = Annotated[
    Listing, typer.Option("--format", help="A table, or JSON with one object per line.")
]

_ShortOption = Annotated[bool, typer.Option("--json", help="Short for `--format json`.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON: one object a line.")]
ResultOption = Annotated[
    bool, typer.Option("--json", help="Write what was done as one JSON object.")
]


def with_json(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has `--format` the option `--json`, a short form of `--format json`."""
    described = inspect.signature(command, eval_str=True)
    formats = type(described.parameters["form"].default)

    @wraps(command)
    def with_option(**given: Any) -> None:
        if given.pop("as_json"):
            given["form"] = formats("json")
        command(**given)

    option = inspect.Parameter(
        "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_ShortOption
    )
    parameters = [*described.parameters.values(), option]
    with_option.__signature__ = described.replace(  # type: ignore[attr-defined]  # of functions
        parameters=parameters
    )
    return with_option


def show(rows: Iterable[Row], columns: Sequence[str], form: Listing, nothing: str) -> None:
    """Print `rows`; without rows, `nothing` is printed for a person."""
    if form is Listing.JSON:
        for row in rows:
            print(json_line(row))
        return
    listed = list(rows)
    if listed:
        print_table(listed, columns, sys.stdout)
    else:
        print(nothing, file=sys.stderr)


def show_result(done: CommandResult, *, as_json: bool) -> None:
    """Print what a command did: in words, or as one JSON object with the words as `text`."""
    typer.echo(json_line({"text": done.text, **done.facts}) if as_json else done.text)


def print_table(rows: Iterable[Row], columns: Sequence[str], stream: TextIO) -> None:
    """Print rows in aligned columns; characters that could control a terminal are shown as
    escapes.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(Text(printable(column)), overflow="fold", no_wrap=not stream.isatty())
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    Console(file=stream, width=width, highlight=False).print(table)


def json_line(row: Row) -> str:
    """Return a row as one line of JSON: decimals as text, bytes in Base64, times in ISO 8601."""
    return json.dumps(row, default=_as_json, ensure_ascii=False)


def printable(text: str) -> str:
    """Return `text` on one line, with control characters as escapes, cut if it is long."""
    return visible(text if len(text) <= _CELL_CHARS_MAX else f"{text[:_CELL_CHARS_MAX]}…")


def visible(text: str) -> str:
    """Return all of `text` on one line, with control characters as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ")
        case bytes():
            return f"0x{value[:_CELL_CHARS_MAX].hex()}"
    return printable(str(value))


def _as_json(value: Any) -> Any:
    match value:
        case bytes():
            return b64encode(value).decode("ascii")
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
        case Mapping():
            return dict(value)
        case frozenset() | set() | tuple():
            return list(value)
    return str(value)


def how_fresh(row: Row) -> str | None:
    """Return how old the real-time view of a listed table may be, or that it has no batch yet; None
    if that is unknown.
    """
    fresh = row.get("freshness_seconds")
    if fresh is not None:
        return age(fresh)
    is_awaited = row.get("freshness_goal_seconds") is not None and row.get("version") is None
    return "no batch yet" if is_awaited else None
