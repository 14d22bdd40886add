"""`lakesplice adopt`: turns a Delta table or Parquet files of other writers into a table fed by
hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.options import ConfigOption, lake_options
from lakesplice.apps.cli.output import Listing, ListingOption, show
from lakesplice.apps.cli.progress import progress_bar
from lakesplice.errors import UsageError

if TYPE_CHECKING:
    from lakesplice.table.by_hand.adoption.adopt import Adoption

_COLUMNS = ("path", "reason")


def adopt(
    path: Annotated[
        str,
        typer.Argument(
            help="A Delta table or a folder of Parquet files, as a path or an address.",
            show_default=False,
        ),
    ],
    key: Annotated[
        str,
        typer.Option(help="The columns that identify a row, as a,b.", show_default=False),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, only say what would be done.")
    ] = False,
    insert_only: Annotated[
        bool,
        typer.Option(
            "--insert-only", help="Rows never change; a row whose key is known is skipped."
        ),
    ] = False,
    form: ListingOption = Listing.TABLE,
    config: ConfigOption = None,
) -> None:
    """Turn a Delta table or a folder of Parquet files, in place, into a table fed by hand.

    A file stays as it is until its rows change; the files listed have columns that must be
    rewritten at once. No other program may write to the table, during the command or afterwards.
    """
    from lakesplice import Table

    names = [name.strip() for name in key.split(",")]
    if not all(names):
        raise UsageError("write --key as names of columns, such as a,b", given=key)
    options = lake_options(config)
    with progress_bar("reading keys") as progress:
        found = Table.adoption(path, key=names, options=options, progress=progress)
    rows = [{"path": file, "reason": reason} for file, reason in found.rewritten.items()]
    show(rows, _COLUMNS, form, "every file is unchanged")
    if dry_run:
        typer.echo(_summary(found, "would be adopted"), err=True)
        return
    with progress_bar("adopting") as progress:
        adopted = Table.adopt(
            path, key=names, insert_only=insert_only, options=options, progress=progress
        )
    typer.echo(f"{_summary(found, 'adopted')} in version {adopted.version}", err=True)


def _summary(found: Adoption, what: str) -> str:
    columns = " ".join(f"{name}:{kind}" for name, kind in found.columns)
    return (
        f"{found.files} files with {found.rows} rows and {found.bytes} bytes {what};"
        f" {len(found.rewritten)} of them rewritten; columns {columns}"
    )
