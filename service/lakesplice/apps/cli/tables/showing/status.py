"""`lakesplice status`: all tables of a lake in a terminal, those in trouble first; once or live."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import ConfigOption, LakeArgument, duration, lake_options
from lakesplice.apps.cli.output import JsonOption, how_fresh, json_line, visible
from lakesplice.errors import UsageError
from lakesplice.model.driver_status import FED_BY_HAND, UNREAD, TopicState
from lakesplice.model.moments import EpochMs, age

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lakesplice.model.driver_status import DriverStatus
    from lakesplice.storage.stores import AnyStore

Row = dict[str, Any]

_STYLES = {
    TopicState.RUNNING.value: "green",
    TopicState.WAITING.value: "cyan",
    TopicState.EXCLUDED.value: "dim",
    TopicState.RESTING.value: "yellow",
    FED_BY_HAND: "green",
    UNREAD: "yellow",
}
_TROUBLE = "bold red"
# States that need an operator come first.
_QUIET_STATES = (TopicState.RUNNING, TopicState.WAITING, TopicState.EXCLUDED)
_QUIET = (*(state.value for state in _QUIET_STATES), FED_BY_HAND)
# The number of lines above and below the rows.
_OTHER_LINES = 12
_ROWS_MIN = 5
_NOTES_MAX = 5
# A driver publishes every ten seconds.
_SILENT_SECONDS = 60.0


def status(
    lake: LakeArgument,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep running, and show changes until Ctrl-C.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            parser=duration(0.5, 3_600),
            help="With `--watch`, how often to look, such as 2s or 1m.",
        ),
    ] = 5.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show the state of all tables of a lake: a summary, then the tables, those in trouble and the
    oldest first.

    Unlike `tables` it doesn't count rows, so it is quick for hundreds of tables.
    """
    from lakesplice.apps.lake import existing_lake

    root = existing_lake(lake, lake_options(config))
    if as_json:
        print(json_line(fleet(root, lake)))
    elif watch:
        if not sys.stdout.isatty():
            raise UsageError("--watch needs a terminal; leave it out, or use --json")
        _watch(lambda: fleet(root, lake), every)
    else:
        _print(fleet(root, lake))


def fleet(root: AnyStore, lake: str) -> Row:
    """Return the present state of a lake: its driver, how many tables are in each state, and a row
    for each table, those in trouble first. Blocks on the store.
    """
    from lakesplice.apps.lake_listing import listing, uncounted
    from lakesplice.table.driver.status import newest_status, unheard_driver

    status, now_ms = newest_status(root), EpochMs(round(time.time() * 1000))
    rows = sorted(listing(root, status, now_ms, uncounted), key=_urgency)
    lags = [row["lag"] for row in rows if row.get("lag") is not None]
    return {
        "lake": lake,
        "driver": _driver(status, now_ms),
        "unheard_driver": unheard_driver(root, status),
        "states": dict(Counter(row["state"] for row in rows).most_common()),
        "lag": sum(lags) if lags else None,
        "tables": rows,
    }


def _driver(status: DriverStatus | None, now_ms: EpochMs) -> Row | None:
    if status is None:
        return None
    silent = max(0, now_ms - status.written_ms) / 1000
    return {"generation": status.generation, "running": status.running, "silent_seconds": silent}


def _urgency(row: Row) -> tuple[bool, float, str]:
    return (
        row["state"] in _QUIET,
        -(row.get("freshness_seconds") or 0.0),
        row["table"] or row["topic"] or "",
    )


def summary(found: Row) -> str:
    """Return the line above the tables: the driver, the states, and what is behind."""
    states = ", ".join(f"{count:,} {state}" for state, count in found["states"].items())
    count = len(found["tables"])
    tables = f"{count:,} table{'' if count == 1 else 's'}{f': {states}' if states else ''}"
    lag = "" if found["lag"] is None else f"; {found['lag']:,} records behind"
    return f"{_driver_text(found['driver'], found['unheard_driver'])}; {tables}{lag}"


def _driver_text(driver: Row | None, unheard: int | None) -> str:
    if unheard is not None:
        return f"driver {unheard} has not reported yet (it starts, or can't write to the lake)"
    if driver is None:
        return "no driver yet"
    ago = age(driver["silent_seconds"])
    if not driver["running"]:
        return f"no driver has run for {ago}"
    if driver["silent_seconds"] > _SILENT_SECONDS:
        return f"driver {driver['generation']} last reported {ago} ago"
    return f"driver {driver['generation']} runs, heard {ago} ago"


def view(found: Row, rows_max: int) -> RenderableType:
    """Return a lake as a terminal shows it, with at most `rows_max` tables."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("table", overflow="ellipsis", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("fresh", "lag", "waiting", "dead"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found["tables"][:rows_max]:
        table.add_row(*(Text(text, style) for text, style in _cells(row)))
    lines = [Text(text, style, overflow="ellipsis", no_wrap=True) for text, style in _notes(found)]
    left = len(found["tables"]) - rows_max
    more = [Text(f"… {left:,} more", style="dim")] if left > 0 else []
    return Group(Text(summary(found), style="bold"), "", table, *more, *lines)


def _cells(row: Row) -> Iterator[tuple[str, str]]:
    state, lag = row["state"], row.get("lag")
    yield _name(row), ""
    yield state, _STYLES.get(state, _TROUBLE)
    yield how_fresh(row) or "", ""
    yield "" if lag is None else f"{lag:,}", ""
    yield f"{row['waiting']:,}" if row.get("waiting") else "", ""
    yield f"{row['dead']:,}" if row.get("dead") else "", _TROUBLE


def _notes(found: Row) -> Iterator[tuple[str, str]]:
    """Yield a line for each table in trouble, at most some, and where to find the rest."""
    notes = [(row, why) for row in found["tables"] if (why := _why(row))]
    if notes:
        yield "", ""
    for row, why in notes[:_NOTES_MAX]:
        yield f"{_name(row)}: {why}", _STYLES.get(row["state"], _TROUBLE)
    if notes:
        yield f"all reasons, whole: lakesplice tables {visible(found['lake'])}", "dim"


def _name(row: Row) -> str:
    return visible(row["table"] or f"(topic) {row['topic']}")


def _why(row: Row) -> str:
    if row["state"] not in _QUIET:
        code = f"{row['code']}: " if row.get("code") else ""
        return visible(f"{code}{row.get('detail') or ''}")
    failure = (row.get("mirror") or {}).get("failure")
    if failure:
        return visible(f"its Iceberg mirror doesn't follow: {failure}")
    names = sorted({one["name"] for one in row.get("suspect_settings", ())})
    return visible(f"a setting changes values: {', '.join(names)}") if names else ""


def _print(found: Row) -> None:
    from rich.console import Console

    width = shutil.get_terminal_size().columns
    Console(width=width, highlight=False).print(view(found, len(found["tables"])))


def _watch(look: Callable[[], Row], every: float) -> None:
    """Show what `look` returns until Ctrl-C, which ends the command normally."""
    from rich.live import Live

    def shown() -> RenderableType:
        rows_max = max(_ROWS_MIN, shutil.get_terminal_size().lines - _OTHER_LINES)
        return view(look(), rows_max)

    try:
        with Live(shown(), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(shown(), refresh=True)
    except KeyboardInterrupt:
        return
