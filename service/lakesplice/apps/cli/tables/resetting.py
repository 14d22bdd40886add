"""`lakesplice reset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    WAIT_SECONDS,
    ConfigOption,
    WaitOption,
    lake_options,
    parse_offset,
)
from lakesplice.apps.cli.output import ResultOption, json_line
from lakesplice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.errors import LakespliceError
    from lakesplice.model.names import TableName

TopicOption = Annotated[str, typer.Option(help="Which topic, if several feed the table.")]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
_FAILED = 1


TablesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE…",
        help="Tables: <lake>/<database>/<table>, paths or addresses. The names of database and"
        " table may be patterns (*, ?, […]), in quotes.",
        show_default=False,
    ),
]
WhyOption = Annotated[
    str, typer.Option("--why", help="Why, for the table's history.", show_default=False)
]
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
        raise UsageError("say where to begin: give one of --to, --offset and --anew")
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


def give_to_tables(
    tables: Sequence[str],
    command: str,
    arguments: Mapping[str, Any],
    *,
    wait: float,
    config: Path | None,
    as_json: bool,
) -> None:
    """Give a command to all tables that addresses or patterns mean, and print the results. If
    several are meant, one that refuses doesn't affect the others, and the exit code is 1.
    """
    from lakesplice.apps.lake import matching_tables
    from lakesplice.apps.table_commands.dispatch import RequestWait, results_of_each

    options, patience = lake_options(config), RequestWait(wait)
    meant = [matching_tables(address, options) for address in tables]
    several, failed = sum(len(names) for _, names in meant) > 1, False
    for lake, names in meant:
        done = results_of_each(lake, names, command, arguments, patience)
        failed |= _show(done, several=several, as_json=as_json)
    if failed:
        raise typer.Exit(_FAILED)


def _show(
    done: Mapping[TableName, CommandResult | LakespliceError], *, several: bool, as_json: bool
) -> bool:
    """Print what became of some tables, and return whether any refused; of a single one the error
    is raised.
    """
    from lakesplice.errors import LakespliceError

    failed = False
    for name, result in done.items():
        if isinstance(result, LakespliceError):
            if not several:
                raise result
            failed = True
        text = str(result) if isinstance(result, LakespliceError) else result.text
        facts: dict[str, Any] = {} if isinstance(result, LakespliceError) else {**result.facts}
        named = {"table": str(name)} if several else {}
        if as_json:
            error = {"error": text} if isinstance(result, LakespliceError) else {"text": text}
            typer.echo(json_line({**named, **error, **facts}))
        else:
            typer.echo(f"{name}: {text}" if several else text, err=isinstance(result, Exception))
    return failed
