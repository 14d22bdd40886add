"""Commands that look after a table: merge small files, delete what no retained version needs,
bring a version back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.output import Listing, ListingOption, show
from lakesplice.apps.cli.tables import AsOfOption, TableArgument
from lakesplice.errors import UsageError
from lakesplice.planning.retention import (
    PURGE_SECONDS,
    RETENTION_SECONDS,
    temporaries_before_ms,
)

if TYPE_CHECKING:
    from lakesplice.table.vacuum import Vacuumed

_FILE_COLUMNS = ("path", "bytes", "kind")


def vacuum(
    table: TableArgument,
    retention_hours: Annotated[
        float, typer.Option(min=0, help="Versions replaced longer ago than this lose their files.")
    ] = RETENTION_SECONDS / 3600,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, only list what would be deleted.")
    ] = False,
    readers_may_fail: Annotated[
        bool,
        typer.Option(
            "--readers-may-fail",
            help="Allow less than an hour: who reads the table just now may find files gone.",
        ),
    ] = False,
    form: ListingOption = Listing.TABLE,
) -> None:
    """Delete files that no retained version needs: of expired versions, and orphans.

    The service does it by itself; it waits while the command works on one of its tables, unless
    that is a dry run.
    """
    from lakesplice import Table
    from lakesplice.apps.commands import vacuum_fed_table
    from lakesplice.apps.lake import table_store
    from lakesplice.storage.places import drop_temporaries
    from lakesplice.storage.system import SystemClock
    from lakesplice.table.vacuum import require_safe_retention

    require_safe_retention(retention_hours * 3600, readers_may_fail=readers_may_fail)
    opened = Table.open(table)
    if dry_run or opened.snapshot.manifest.upserts is not None:
        done = opened.vacuum(
            retention_hours=retention_hours, dry_run=dry_run, readers_may_fail=readers_may_fail
        )
    else:
        done = vacuum_fed_table(table, retention_hours * 3600)
    if not dry_run:
        now_ms = SystemClock().now_ms()
        drop_temporaries(table_store(table), temporaries_before_ms(now_ms))
    _show(done, form, "would be deleted" if dry_run else "deleted")


def merge(table: TableArgument) -> None:
    """Merge small base files into larger ones, if there are many.

    The service does it by itself; it waits while the command works on one of its tables.
    """
    from lakesplice import Table
    from lakesplice.apps.commands import merge_fed_table

    opened = Table.open(table)
    by_hand = opened.snapshot.manifest.upserts is not None
    files = opened.merge().files if by_hand else merge_fed_table(table)
    left = len(opened.refresh().snapshot.manifest.files)
    typer.echo(f"{files} files merged; {left} base files now")


def purge(
    table: TableArgument,
    older_than_hours: Annotated[
        float,
        typer.Option(min=0, help="Only rows deleted longer ago leave, by the source's clock."),
    ] = PURGE_SECONDS / 3600,
) -> None:
    """Write base files anew without rows that were deleted long ago; older versions keep them.

    Rows stay that some partition hasn't passed, or that a dead letter may change, or for whose file
    changes wait. The service does it by itself where `purge.after` is set; it waits while the
    command works on one of its tables.
    """
    from lakesplice import Table
    from lakesplice.apps.commands import purge_fed_table

    opened = Table.open(table)
    if opened.snapshot.manifest.upserts is not None:
        rows = opened.purge(older_than_hours=older_than_hours).rows
    else:
        rows = purge_fed_table(table, older_than_hours * 3600)
    typer.echo(f"{rows} deleted rows left for good")


def restore(
    table: TableArgument,
    version: Annotated[
        int | None, typer.Option("--version", min=0, help="The version to bring back.")
    ] = None,
    as_of: AsOfOption = None,
) -> None:
    """Make an older version's state the newest one, in a commit of its own.

    A running service waits meanwhile, then reads again what came since.
    """
    from lakesplice import Table
    from lakesplice.apps.commands import restore_fed_table
    from lakesplice.apps.lake import table_store
    from lakesplice.table.facade import asked_version

    wanted = asked_version(table_store(table), version, as_of)
    if wanted is None:
        raise UsageError("say which version to restore: --version or --as-of")
    opened = Table.open(table)
    if opened.snapshot.manifest.upserts is not None:
        made = opened.restore(wanted)
        typer.echo(f"version {wanted} restored as version {made}")
        return
    made = restore_fed_table(table, wanted).version
    typer.echo(
        f"version {wanted} restored as version {made}; the service reads again what came since"
    )


def _show(done: Vacuumed, form: Listing, what: str) -> None:
    rows = [
        {"path": path, "bytes": size, "kind": kind}
        for kind, files in (("expired", done.expired), ("orphan", done.orphans))
        for path, size in sorted(files.items())
    ]
    show(rows, _FILE_COLUMNS, form, "nothing to delete")
    typer.echo(
        f"{done.files} files with {done.bytes} bytes {what};"
        f" versions from {done.retained_from} on are whole",
        err=True,
    )
