"""Runs a command for several tables at once, given by name or by pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import lake_options
from lakesplice.apps.cli.output import json_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.errors import LakespliceError
    from lakesplice.model.names import TableName

TopicOption = Annotated[str, typer.Option(help="Which topic, if several feed the table.")]

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


def give_to_tables(
    tables: Sequence[str],
    command: str,
    arguments: Mapping[str, Any],
    *,
    wait: float,
    config: Path | None,
    as_json: bool,
) -> None:
    """Run a command for all tables that match addresses or patterns, and print the results. If one
    of several tables refuses, the others aren't affected, and the exit code is 1.
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
    """Print the results of some tables, and return whether any refused. With a single table its
    error is raised.
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
