"""What the demo shows while it runs: a live table on a terminal; elsewhere a line from time to
time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lakesplice.apps.service import ServiceStatus, TableStatus
from lakesplice.table.protocol.ports import Clock

_LINE_SECONDS = 5.0
_HEADINGS = (
    "table", "changes in", "rows visible", "fresh: real time", "fresh: read-optimised",
    "deltas waiting", "compactions",
)  # fmt: skip


class Progress:
    """Shows the service's state, as a context manager; `show` may be called at any rate."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._live = Live(console=console, refresh_per_second=4, transient=False)
        self._line_due = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, what: str, produced: int, status: ServiceStatus) -> None:
        """Show the present state; `produced` records are in Kafka by now."""
        if self._console.is_terminal:
            self._live.update(_table(what, produced, status))
        elif self._clock.monotonic() >= self._line_due:
            self._line_due = self._clock.monotonic() + _LINE_SECONDS
            self._console.print(_line(what, produced, status), highlight=False, soft_wrap=True)


def _line(what: str, produced: int, status: ServiceStatus) -> str:
    tables = status.tables
    return (
        f"  {what}: {produced:,} records in Kafka (with tombstones),"
        f" {sum(t.changes_in for t in tables):,} changes read,"
        f" {sum(t.rows for t in tables):,} rows in {len(tables)} tables, freshness"
        f" {_seconds(_oldest(t.freshness_real_time_seconds for t in tables))} real time and"
        f" {_seconds(_oldest(t.freshness_read_optimised_seconds for t in tables))} read-optimised,"
        f" {sum(t.deltas_waiting for t in tables)} deltas waiting,"
        f" {sum(t.compactions for t in tables)} compactions"
    )


def _table(what: str, produced: int, status: ServiceStatus) -> Table:
    title = f"{what}: {produced:,} records in Kafka (with tombstones)"
    shown = Table(title=title, title_justify="left")
    for number, heading in enumerate(_HEADINGS):
        shown.add_column(heading, justify="right" if number else "left")
    for table in status.tables:
        shown.add_row(*_cells(table))
    return shown


def _cells(table: TableStatus) -> tuple[Text, ...]:
    name = Text(str(table.name))
    if table.parked:
        name.append(f" parked: {table.parked}", style="red")
    return (
        name,
        Text(f"{table.changes_in:,}"),
        Text(f"{table.rows:,}"),
        Text(_seconds(table.freshness_real_time_seconds)),
        Text(_seconds(table.freshness_read_optimised_seconds)),
        Text(f"{table.deltas_waiting}"),
        Text(f"{table.compactions}"),
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _oldest(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known, default=None)
