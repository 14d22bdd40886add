"""`lakesplice optimize`: lays a table out by columns, so that selective readers open few files."""

from __future__ import annotations

from typing import Annotated

import typer

from lakesplice.apps.cli.options import (
    WAIT_SECONDS,
    ConfigOption,
    TableArgument,
    WaitOption,
    lake_options,
)
from lakesplice.apps.cli.output import ResultOption, show_result
from lakesplice.apps.cli.progress import progress_bar

ByOption = Annotated[
    list[str],
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="A column that queries filter by. Repeat it for several, or separate them by commas."
        " Without it: the columns that were chosen for the table, or used last.",
        show_default=False,
    ),
]
FullOption = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Lay out every file, also those that are laid out by other columns, or by the same"
        " ones at another time.",
    ),
]


def optimize(
    table: TableArgument,
    by: ByOption = [],  # noqa: B006  # typer copies it
    full: FullOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, only say what would be rewritten.")
    ] = False,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Lay base files out by columns, so that queries that filter by them open few files.

    Rows are ordered along a Hilbert curve through these columns. Files that are laid out already
    are left, except for small ones beside new ones; with --full all are laid out again. Waiting
    changes keep waiting. While a service executes this command, it reads no records.
    """
    from lakesplice import Table
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.optimizing import result_of
    from lakesplice.apps.table_commands.work import OPTIMIZE

    columns = [name.strip() for names in by for name in names.split(",") if name.strip()]
    options = lake_options(config)
    opened = Table.open(table, options=options)
    with progress_bar(OPTIMIZE) as progress:
        if dry_run or opened.snapshot.manifest.is_fed_by_hand:
            found = opened.optimize(columns, full=full, dry_run=dry_run, progress=progress)
            done = result_of(found, dry_run=dry_run)
        else:
            done = give_command(
                table,
                OPTIMIZE,
                {"by": columns, "full": full},
                patience=RequestWait(wait),
                options=options,
                progress=progress,
            )
    show_result(done, as_json=as_json)
