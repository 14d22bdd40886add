"""`lakesplice reset`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakesplice.apps.cli.options import (
    WAIT_SECONDS,
    ConfigOption,
    TableArgument,
    WaitOption,
    lake_options,
    parse_offset,
)
from lakesplice.apps.cli.output import ResultOption, show_result
from lakesplice.errors import UsageError

TopicOption = Annotated[str, typer.Option(help="Which topic, if several feed the table.")]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def reset(
    table: TableArgument,
    why: Annotated[
        str, typer.Option("--why", help="Why, for the table's history.", show_default=False)
    ],
    offset: Annotated[
        list[str] | None,
        typer.Option(
            help="Read a partition from this offset on, as partition:offset. May be given for"
            " each partition.",
        ),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="Read the topic from its `earliest` records on, or from those written at a moment"
            " such as 2026-11-22T08:00:00Z.",
        ),
    ] = "",
    anew: Annotated[
        bool,
        typer.Option("--anew", help="Delete all rows, and read the topic from its beginning."),
    ] = False,
    topic: TopicOption = "",
    skip: Annotated[
        bool, typer.Option("--skip", help="Allow to skip records that were never read.")
    ] = False,
    dry_run: DryRunOption = False,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Read a table's topic again, from given offsets on, or reload the whole table.

    A record that is read again has no effect on a row that is as new or newer. A running service
    does it between two batches. `--to` and `--anew` need one, since only the service knows where
    topics begin.
    """
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.resetting import EARLIEST
    from lakesplice.apps.table_commands.work import RESET
    from lakesplice.table.reading.table import moment_ms

    if (bool(offset), bool(to), anew).count(True) != 1:
        raise UsageError("say where to begin: give one of --offset, --to and --anew", table=table)
    if anew and topic:
        raise UsageError("--anew reloads the whole table; leave --topic out", table=table)
    arguments = {
        "offsets": sorted(dict(map(parse_offset, offset or [])).items()),
        "to": None if not to else EARLIEST if to == EARLIEST else moment_ms(to),
        "topic": topic,
        "anew": anew,
        "skip": skip,
        "dry_run": dry_run,
        "why": why,
    }
    done = give_command(
        table, RESET, arguments, patience=RequestWait(wait), options=lake_options(config)
    )
    show_result(done, as_json=as_json)
