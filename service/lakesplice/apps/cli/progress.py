"""A progress bar on the terminal for long work: how much is done, and how long the rest will
take.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from lakesplice.table.protocol.ports import Progress


@contextmanager
def progress_bar(work: str) -> Iterator[Progress]:
    """Show a bar named `work` on the standard error while the block runs, if that is a terminal.

    The bar only moves back and forth until the size of the work is known, and always while a
    running service does the work. It disappears at the end.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        yield _Bar(bars, bars.add_task(work, total=None))


class _Bar:
    """`Progress` as a bar on the terminal."""

    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars = bars
        self._task = task
        self._expected = 0

    def expect(self, units: int) -> None:
        """See `Progress.expect`."""
        self._expected += units
        self._bars.update(self._task, total=self._expected)

    def advance(self, units: int) -> None:
        """See `Progress.advance`."""
        self._bars.advance(self._task, units)
