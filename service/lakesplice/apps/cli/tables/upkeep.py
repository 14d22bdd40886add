"""Commands that maintain a table: compact, merge small files, purge, vacuum, restore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    LONGEST_SECONDS,
    WAIT_SECONDS,
    AsOfOption,
    ConfigOption,
    TableArgument,
    WaitOption,
    duration,
    lake_options,
)
from lakesplice.apps.cli.output import (
    Listing,
    ListingOption,
    ResultOption,
    show,
    show_result,
)
from lakesplice.apps.cli.progress import progress_bar
from lakesplice.errors import UsageError
from lakesplice.planning.upkeep.retention import (
    PURGE_SECONDS,
    RETENTION_SECONDS,
    temporaries_before_ms,
)

if TYPE_CHECKING:
    from lakesplice import Table
    from lakesplice.table.upkeep.vacuum import Vacuumed

_FILE_COLUMNS = ("path", "bytes", "kind")


def vacuum(
    table: TableArgument,
    retention: Annotated[
        float,
        typer.Option(
            "--retention",
            "--retention-hours",
            parser=duration(0, LONGEST_SECONDS, unit=3_600),
            help="Delete the files of versions that were replaced longer ago than this, such as"
            " 7d. A number without a unit is in hours.",
        ),
    ] = RETENTION_SECONDS,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, only list what would be deleted.")
    ] = False,
    readers_may_fail: Annotated[
        bool,
        typer.Option(
            "--readers-may-fail",
            help="Allow less than an hour. Running reads may then fail because a file is missing.",
        ),
    ] = False,
    form: ListingOption = Listing.TABLE,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Delete files that no retained version needs: those of expired versions, and orphans.

    The service does this by itself. While it executes this command, it reads no records.
    """
    from lakesplice import Table
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.work import VACUUM
    from lakesplice.table.upkeep.vacuum import Vacuumed, require_safe_retention

    require_safe_retention(retention, readers_may_fail=readers_may_fail)
    options = lake_options(config)
    opened = Table.open(table, options=options)
    if dry_run or opened.snapshot.manifest.is_fed_by_hand:
        done = opened.vacuum(
            retention_hours=retention / 3600, dry_run=dry_run, readers_may_fail=readers_may_fail
        )
    else:
        arguments = {"retention_seconds": retention}
        given = give_command(table, VACUUM, arguments, patience=RequestWait(wait), options=options)
        done = Vacuumed(**given.facts)
    if not dry_run:
        _drop_temporaries(table, options)
    _show(done, form, "would be deleted" if dry_run else "deleted")


def _drop_temporaries(table: str, options: Mapping[str, str]) -> None:
    """Delete what processes that died left half written beside the table."""
    from lakesplice.apps.lake import table_store
    from lakesplice.storage.stores import drop_temporaries
    from lakesplice.storage.system import SystemClock

    now_ms = SystemClock().now_ms()
    drop_temporaries(table_store(table, options), temporaries_before_ms(now_ms))


def compact(
    table: TableArgument,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Merge all waiting changes into the base files, so that every Delta reader sees them.

    The service does this by itself. While it executes this command, it reads no records.
    """
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.work import COMPACT

    opened = _fed_by_hand(table, COMPACT, {}, wait, config, as_json=as_json)
    if opened is not None:
        with progress_bar(COMPACT) as progress:
            done = opened.compact(progress=progress)
        files, version = done.files, done.version
        text = f"{done.changes} changes merged into {files} base files in version {version}"
        show_result(CommandResult(text, asdict(done)), as_json=as_json)


def merge(
    table: TableArgument,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Merge small base files into larger ones, if there are many.

    The service does this by itself. While it executes this command, it reads no records.
    """
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.work import MERGE

    opened = _fed_by_hand(table, MERGE, {}, wait, config, as_json=as_json)
    if opened is not None:
        with progress_bar(MERGE) as progress:
            done = opened.merge_files(progress=progress)
        left = len(opened.refresh().snapshot.manifest.files)
        text = f"{done.files} files merged; {left} base files now"
        show_result(CommandResult(text, {**asdict(done), "left": left}), as_json=as_json)


def purge(
    table: TableArgument,
    older_than: Annotated[
        float,
        typer.Option(
            "--older-than",
            "--older-than-hours",
            parser=duration(0, LONGEST_SECONDS, unit=3_600),
            help="Remove only rows that were deleted longer ago than this, such as 30d, by the"
            " source's clock. A number without a unit is in hours.",
        ),
    ] = PURGE_SECONDS,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Rewrite base files without rows that were deleted long ago. Older versions keep them.

    A row is kept if a partition may still deliver a change of it, if a dead letter may change it,
    or if changes wait for its file. The service purges by itself if `purge.after` is set. While it
    executes this command, it reads no records.
    """
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.work import PURGE

    arguments = {"older_than_seconds": older_than}
    opened = _fed_by_hand(table, PURGE, arguments, wait, config, as_json=as_json)
    if opened is not None:
        with progress_bar(PURGE) as progress:
            done = opened.purge(older_than_hours=older_than / 3600, progress=progress)
        text = f"{done.rows} deleted rows removed for good"
        show_result(CommandResult(text, asdict(done)), as_json=as_json)


def restore(
    table: TableArgument,
    version: Annotated[
        int | None, typer.Option("--version", min=0, help="The version to restore.")
    ] = None,
    as_of: AsOfOption = None,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Restore the state of an older version, by a new commit.

    A running service does it between two batches, then reads again the records since that version.
    If the newest versions can't be read (another program committed them, or their manifests are
    lost or damaged), they are undone first.
    """
    from lakesplice import Table
    from lakesplice.apps.lake import table_store
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.work import RESTORE
    from lakesplice.storage.system import SystemClock, SystemEntropy
    from lakesplice.table.reading.table import requested_version
    from lakesplice.table.upkeep.unreadable_versions import undo_unreadable

    options = lake_options(config)
    store = table_store(table, options)
    wanted = requested_version(store, version, as_of)
    if wanted is None:
        raise UsageError("say which version to restore: --version or --as-of")
    undone = undo_unreadable(store, wanted, clock=SystemClock(), entropy=SystemEntropy())
    if undone is not None and undone.restored == wanted:
        text = (
            f"version {wanted} restored as version {undone.version}, over {undone.undone} that"
            " can't be read"
        )
        show_result(CommandResult(text, asdict(undone)), as_json=as_json)
        return
    opened = Table.open(table, options=options)
    if opened.snapshot.manifest.is_fed_by_hand:
        made = opened.restore(wanted)
        text, versions = f"version {wanted} restored as version {made}", {"version": made}
        show_result(CommandResult(text, versions), as_json=as_json)
        return
    done = give_command(
        table, RESTORE, {"version": wanted}, patience=RequestWait(wait), options=options
    )
    show_result(done, as_json=as_json)


def _fed_by_hand(
    address: str,
    command: str,
    arguments: Mapping[str, Any],
    wait: float,
    config: Path | None,
    *,
    as_json: bool,
) -> Table | None:
    """Return the table, open, if it is fed by hand. If a topic feeds it, let its driver execute the
    command, show the result, and return None.
    """
    from lakesplice import Table
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command

    options = lake_options(config)
    opened = Table.open(address, options=options)
    if opened.snapshot.manifest.is_fed_by_hand:
        return opened
    with progress_bar(command) as progress:
        done = give_command(
            address,
            command,
            arguments,
            patience=RequestWait(wait),
            options=options,
            progress=progress,
        )
    show_result(done, as_json=as_json)
    return None


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
