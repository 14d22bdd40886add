"""`lakesplice index`: compare the row index with the rows, or rebuild it."""

from __future__ import annotations

from dataclasses import asdict

import typer

from lakesplice.apps.cli.options import (
    WAIT_SECONDS,
    ConfigOption,
    TableArgument,
    WaitOption,
    lake_options,
)
from lakesplice.apps.cli.output import (
    Listing,
    ListingOption,
    ResultOption,
    json_line,
    show,
    show_result,
    with_json,
)
from lakesplice.apps.cli.progress import progress_bar

app = typer.Typer(help="Check or rebuild the row index.", no_args_is_help=True)

EXIT_UNSOUND = 1
_COUNTS = ("rows", "entries", "missing", "wrong", "stray", "duplicates")


@app.command("check")
@with_json
def check_index(
    table: TableArgument, form: ListingOption = Listing.TABLE, config: ConfigOption = None
) -> None:
    """Compare the row index with the keys of all rows; exit with 1 if they differ."""
    from lakesplice.apps.lake import table_store
    from lakesplice.table.protocol.snapshot import open_snapshot
    from lakesplice.table.upkeep.index_check import check

    store = table_store(table, lake_options(config))
    with progress_bar("reading keys") as progress:
        report = check(store, open_snapshot(store), progress=progress)
    if form is Listing.JSON:
        typer.echo(json_line({"sound": report.sound, **asdict(report)}))
    else:
        show([asdict(report)], _COUNTS, form, "")
        for path, reason in report.damaged:
            typer.echo(f"damaged: {path}: {reason}", err=True)
        for example in report.examples:
            typer.echo(example, err=True)
    if report.sound:
        typer.echo("the index is sound", err=True)
        return
    typer.echo("the index has faults; repair it with `lakesplice index rebuild`", err=True)
    raise typer.Exit(EXIT_UNSOUND)


@app.command("rebuild")
def rebuild_index(
    table: TableArgument,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Rebuild the row index from the rows' keys. A running service does it between batches."""
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.work import REBUILD

    patience, options = RequestWait(wait), lake_options(config)
    with progress_bar("rebuilding the index") as progress:
        done = give_command(
            table, REBUILD, {}, patience=patience, options=options, progress=progress
        )
    show_result(done, as_json=as_json)
