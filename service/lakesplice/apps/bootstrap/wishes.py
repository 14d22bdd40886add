"""What a command wants of the tables that it fills, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakesplice.model.progress.shadow_plan import FilledFrom


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """What became of a table: `state` is `filled`, `planned`, `given up`, `exists`, `refused`,
    `stopped` or `different`; the last three say why in `detail`. `different`: the shadow isn't the
    database's table, and the table stays as it is.

    `is_complete` says that the table was as the source was at one moment when readers saw it first.
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
class Wishes:
    """What is to be done: `rebuild` tables that are there, begin `again` what was begun, give that
    up and do nothing else (`give_up`), or only say (`dry_run`). `excluded` are columns that the
    connector leaves out, as `table.column` or by their name alone. `files` is a glob of files that
    were written at a `position` of the binlog, if the table is `filled_from` these; `connector_ran`
    says that the connector streamed the table by then. With `verify` a shadow is
    compared with the database before it takes the table's place.
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
