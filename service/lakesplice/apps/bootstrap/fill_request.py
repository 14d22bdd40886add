"""What a command requests for the tables that it fills, and the result for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakesplice.model.progress.shadow_plan import FilledFrom


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """The result for a table: `state` is `filled`, `planned`, `given up`, `exists`, `refused`,
    `stopped` or `different`; for the last three `detail` says why. `different`: the shadow differs
    from the database's table, and the table is unchanged.

    `is_complete` says that the first version that readers saw equalled the source at one moment.
    `verified` is the outcome of a comparison with the database; empty without one.
    """

    table: str
    topic: str
    state: str
    chunks: int = 0
    rows: int = 0
    seconds: float = 0.0
    is_complete: bool = False
    verified: str = ""
    detail: str = ""


@dataclass(frozen=True)
class FillRequest:
    """What to do: `rebuild` existing tables, start again from the beginning (`again`), only abandon
    what was started (`give_up`), or only report (`dry_run`). `excluded` are columns that the
    connector leaves out, as `table.column` or by their name alone. `files` is a glob of files that
    were written at a `position` of the binlog, for a table that is `filled_from` files;
    `connector_ran` says that the connector streamed the table by then. With `verify` a shadow is
    compared with the database before it replaces the table.
    """

    tables: Sequence[str] = ()
    rebuild: bool = False
    again: bool = False
    give_up: bool = False
    dry_run: bool = False
    excluded: Sequence[str] = ()
    settle_seconds: float = 60.0
    filled_from: FilledFrom = FilledFrom.DATABASE
    files: str = ""
    position: str = ""
    connector_ran: bool = False
    verify: bool = False

    def excluded_from(self, table: str) -> frozenset[str]:
        """Return the columns of a table that the connector leaves out."""
        return frozenset(name.removeprefix(f"{table}.") for name in self.excluded)
