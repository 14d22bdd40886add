"""`lakesplice inspect`: shows the content of a table's files, without the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import ConfigOption, TableArgument, lake_options
from lakesplice.apps.cli.output import (
    Listing,
    ListingOption,
    json_line,
    print_table,
    show,
    with_json,
)
from lakesplice.apps.cli.page_inspection import inspect_pages
from lakesplice.errors import UsageError
from lakesplice.model.moments import age, utc_time

if TYPE_CHECKING:
    from lakesplice.model.manifest import DeltaRef
    from lakesplice.table.protocol.ports import Store
    from lakesplice.table.protocol.snapshot import Snapshot

app = typer.Typer(
    help="Look inside a table: its log, deltas, row index, manifest; or a file: its pages.",
    no_args_is_help=True,
)
VersionOption = Annotated[
    int | None, typer.Option("--version", min=0, help="The version; the newest without it.")
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many to show at most.")]

_LOG_COLUMNS = ("version", "operation", "added", "removed", "bytes_added", "id")
_DELTA_COLUMNS = ("path", "rows", "waiting", "groups", "bytes", "schema_version", "age")
_RUN_COLUMNS = ("path", "entries", "groups", "bytes", "keys_version")

app.command("pages")(with_json(inspect_pages))


@app.command("log")
@with_json
def inspect_log(
    table: TableArgument,
    version: VersionOption = None,
    limit: LimitOption = 20,
    form: ListingOption = Listing.TABLE,
    config: ConfigOption = None,
) -> None:
    """List the log's commits, newest first; with --version the actions of one commit, as JSON."""
    from lakesplice.apps.lake import table_store
    from lakesplice.table.protocol.history import history
    from lakesplice.table.protocol.layout import commit_path

    store = table_store(table, lake_options(config))
    if version is not None:
        typer.echo(store.read(commit_path(version)).decode(errors="replace"), nl=False)
        return
    rows = (_commit_row(store, entry.version) for entry in islice(history(store), limit))
    show(rows, _LOG_COLUMNS, form, "no commits")


@app.command("manifest")
def inspect_manifest(
    table: TableArgument,
    version: VersionOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON on one line; without it the same, indented.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Show the manifest of a version as JSON."""
    from lakesplice.apps.lake import table_store
    from lakesplice.formats.manifests import encode_manifest
    from lakesplice.table.protocol.snapshot import open_snapshot

    snapshot = open_snapshot(table_store(table, lake_options(config)), version)
    content = json.loads(encode_manifest(snapshot.manifest))
    indent = None if as_json else 2
    typer.echo(json.dumps({"version": snapshot.version, **content}, indent=indent))


@app.command("deltas")
@with_json
def inspect_deltas(
    table: TableArgument,
    version: VersionOption = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="Show the changes in this delta, given by path or name."),
    ] = None,
    limit: LimitOption = 20,
    form: ListingOption = Listing.TABLE,
    config: ConfigOption = None,
) -> None:
    """List the deltas that wait for compaction, oldest first, or the changes in one of them."""
    from lakesplice.apps.lake import table_store
    from lakesplice.table.protocol.snapshot import open_snapshot

    store = table_store(table, lake_options(config))
    snapshot = open_snapshot(store, version)
    if file is not None:
        _show_changes(store, snapshot, _delta_named(snapshot, file), limit, form)
        return
    rows = [_delta_row(delta, form) for delta in snapshot.manifest.deltas]
    show(rows, _DELTA_COLUMNS, form, "no deltas wait")


@app.command("index")
@with_json
def inspect_index(
    table: TableArgument,
    version: VersionOption = None,
    form: ListingOption = Listing.TABLE,
    config: ConfigOption = None,
) -> None:
    """List the runs of the row index, oldest first."""
    from lakesplice.apps.lake import table_store
    from lakesplice.formats.rowindex import Run
    from lakesplice.table.protocol.snapshot import open_snapshot

    store = table_store(table, lake_options(config))
    rows = []
    for run in open_snapshot(store, version).manifest.runs:
        with store.open(run.file.path) as source:
            opened = Run.from_buffer(source.read_buffer(), run.file.path)
            rows.append(
                {
                    "path": run.file.path,
                    "entries": run.entries,
                    "groups": len(opened.groups),
                    "bytes": run.file.bytes,
                    "keys_version": run.keys_version,
                }
            )
    show(rows, _RUN_COLUMNS, form, "no runs")


def _commit_row(store: Any, version: int) -> dict[str, Any]:
    from lakesplice.formats.log.actions import Add, CommitInfo, Remove
    from lakesplice.formats.log.commit_file import decode_commit
    from lakesplice.table.protocol.layout import commit_path

    actions = decode_commit(store.read(commit_path(version)), commit_path(version))
    info = next((a for a in actions if isinstance(a, CommitInfo)), CommitInfo(None, ""))
    added = [action for action in actions if isinstance(action, Add)]
    return {
        "version": version,
        "operation": info.operation,
        "added": len(added),
        "removed": sum(isinstance(action, Remove) for action in actions),
        "bytes_added": sum(action.bytes for action in added),
        "id": info.id,
    }


def _delta_row(delta: DeltaRef, form: Listing) -> dict[str, Any]:
    committed = utc_time(delta.committed_ms)
    passed = (datetime.now(UTC) - committed).total_seconds()
    return {
        "path": delta.file.path,
        "rows": delta.rows,
        "waiting": sum(delta.waiting.values()),
        "groups": len(delta.waiting),
        "bytes": delta.file.bytes,
        "schema_version": delta.schema_version,
        "age": age(passed) if form is Listing.TABLE else round(passed, 3),
    }


def _delta_named(snapshot: Snapshot, name: str) -> DeltaRef:
    wanted = Path(name).name
    for delta in snapshot.manifest.deltas:
        if Path(delta.file.path).name == wanted:
            return delta
    raise UsageError(
        "no delta of that name waits in this version; leave the name out to list them",
        file=name,
        version=snapshot.version,
    )


def _show_changes(
    store: Store, snapshot: Snapshot, delta: DeltaRef, limit: int, form: Listing
) -> None:
    import sys

    from lakesplice.formats.deltas import decode_delta
    from lakesplice.table.files.whole_files import read_file

    data = read_file(store, delta.file)
    changes = decode_delta(
        data, snapshot.manifest.schema, delta.schema_version, path=delta.file.path
    )
    rows = changes.slice(0, limit).to_pylist()
    if form is Listing.JSON:
        for row in rows:
            typer.echo(json_line(row))
        return
    print_table(rows, changes.column_names, sys.stdout)
    if changes.num_rows > limit:
        typer.echo(f"{changes.num_rows - limit} more; see --limit", err=True)
