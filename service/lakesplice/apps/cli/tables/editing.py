"""`lakesplice sql`: edits of tables fed by hand, as statements of SQL."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption, lake_options
from lakesplice.apps.cli.output import ResultOption, show_result


def sql(
    lake: Annotated[
        str, typer.Argument(help="The lake, as a path or an address.", show_default=False)
    ],
    statement: Annotated[
        str,
        typer.Argument(
            help="UPDATE, DELETE, MERGE or INSERT INTO, of a table named database.table.",
            show_default=False,
        ),
    ],
    merge: Annotated[
        bool,
        typer.Option(
            "--merge", help="Write the base files in the same commit, so that every reader sees it."
        ),
    ] = False,
    as_json: ResultOption = False,
    config: ConfigOption = None,
) -> None:
    """Change rows of a table that is fed by hand, in one commit, as Table.update and similar
    methods do.

    The source of a MERGE or INSERT is a Parquet file, such as 'rows.parquet', or another table of
    the lake. Tables that a topic feeds are refused: change their rows at the source.
    """
    from lakesplice.apps.library.sql_statements import run_statement
    from lakesplice.apps.table_commands.command_table import CommandResult

    table, done = run_statement(lake, statement, lake_options(config), merge=merge or None)
    text = (
        f"{done.inserted} inserted, {done.updated} updated, {done.deleted} deleted;"
        f" version {done.version}"
    )
    show_result(CommandResult(text, {"table": str(table)} | asdict(done)), as_json=as_json)
