"""`lakesplice reset`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakesplice.apps.cli.options import WAIT_SECONDS, ConfigOption, WaitOption, parse_offset
from lakesplice.apps.cli.output import ResultOption
from lakesplice.apps.cli.tables.several_tables import (
    TablesArgument,
    TopicOption,
    WhyOption,
    give_to_tables,
)
from lakesplice.errors import UsageError

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
_To = Annotated[
    str,
    typer.Option(
        help="From where to read: `earliest`, `latest`, a moment such as 2026-11-22T08:00:00Z,"
        " `partition:offset,…`, `'binlog FILE:POSITION'` or `'gtid SET'`.",
    ),
]
_Offset = Annotated[
    list[str] | None,
    typer.Option(
        help="Read a partition from this offset on, as partition:offset. May be given for each"
        " partition.",
    ),
]
_Anew = Annotated[
    bool, typer.Option("--anew", help="Delete all rows, and read the topic from its beginning.")
]
_Skip = Annotated[
    bool,
    typer.Option("--skip", help="Allow to skip records that were never read, which leaves a gap."),
]


def reset(
    tables: TablesArgument,
    why: WhyOption,
    to: _To = "",
    offset: _Offset = None,
    anew: _Anew = False,
    topic: TopicOption = "",
    skip: _Skip = False,
    dry_run: DryRunOption = False,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Read tables' topics again, from given offsets on, or reload whole tables.

    A record that is read again has no effect on a row that is as new or newer. A running service
    does it between two batches. Without one only offsets can be given, since only the service
    knows what topics contain.
    """
    from lakesplice.apps.table_commands.reset_target import ResetTarget
    from lakesplice.apps.table_commands.work import RESET

    if (bool(offset), bool(to), anew).count(True) != 1:
        raise UsageError("say where to start: give one of --to, --offset and --anew")
    if anew and topic:
        raise UsageError("--anew reloads the whole table; leave --topic out")
    target = to or ",".join(f"{at}:{start}" for at, start in map(parse_offset, offset or []))
    if target:
        ResetTarget.of(target)  # before anything is asked
    arguments = {
        "to": target or None,
        "topic": topic,
        "anew": anew,
        "skip": skip,
        "dry_run": dry_run,
        "why": why,
    }
    give_to_tables(tables, RESET, arguments, wait=wait, config=config, as_json=as_json)
