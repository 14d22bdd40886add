"""`lakesplice bootstrap` and `rebuild`: tables filled from their database or their topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    PASSWORD,
    WAIT_SECONDS,
    CertificatesOption,
    ConfigOption,
    WaitOption,
    duration,
    with_options_of,
)
from lakesplice.apps.cli.output import JsonOption, Listing, show
from lakesplice.apps.cli.progress import progress_bar
from lakesplice.errors import UsageError

if TYPE_CHECKING:
    from lakesplice.apps.bootstrap import FillRequest


class RebuildFrom(StrEnum):
    """Where a rebuilt table's rows come from."""

    BOOTSTRAP = "bootstrap"
    TOPIC = "topic"
    SNAPSHOT = "snapshot"


_COLUMNS = ("table", "state", "rows", "chunks", "seconds", "complete", "verified", "detail")
_GOOD = ("filled", "planned", "given up", "exists")
FromOption = Annotated[
    RebuildFrom,
    typer.Option(
        "--from",
        help="Where the rows come from: `bootstrap` reads them from the database, `topic` replays"
        " the topic from its first record, `snapshot` from where the connector's newest snapshot"
        " of the table begins.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Compare the new content with the database first, and keep the old one if they"
        " differ.",
    ),
]
FilesOption = Annotated[
    str,
    typer.Option(
        "--files",
        help="Parquet or CSV files (.parquet, .csv) with the rows of one table, as a glob or an"
        " address with one, instead of the database. Needs --position.",
        show_default=False,
    ),
]
PositionOption = Annotated[
    str,
    typer.Option(
        "--position",
        help="Where in the binlog the files were written, such as mysql-bin.000012:345: they have"
        " every change before and none after.",
        show_default=False,
    ),
]
ConnectorRanOption = Annotated[
    bool,
    typer.Option(
        "--connector-ran",
        help="The connector streamed the table at --position, though its topic has no record from"
        " before.",
    ),
]


@dataclass(frozen=True)
class FillingOptions:
    """The options that `bootstrap` and `rebuild` have in common."""

    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            help="The source's server, mysql://user@host:3306; without it, doctor.database of the"
            f" configuration. The password is taken from {PASSWORD}.",
            show_default=False,
        ),
    ] = None
    connections: Annotated[
        int,
        typer.Option(
            "--connections", min=1, max=64, help="How many connections read at once, in all."
        ),
    ] = 4
    rows_per_second: Annotated[
        int,
        typer.Option(
            "--rows-per-second", min=0, help="Read at most so many rows per second; 0: no bound."
        ),
    ] = 0
    chunk_rows: Annotated[
        int,
        typer.Option("--chunk-rows", min=1, max=1_000_000, help="About how many rows a chunk has."),
    ] = 20_000
    threads_running_max: Annotated[
        int,
        typer.Option(
            "--threads-running-max",
            min=1,
            help="Start no chunk while more threads of the server than this are running.",
        ),
    ] = 50
    excluded: Annotated[
        list[str] | None,
        typer.Option(
            "--excluded",
            help="A column that the connector leaves out, as `column` or `table.column`. May be"
            " given several times.",
        ),
    ] = None
    settle: Annotated[
        float,
        typer.Option(
            "--settle",
            parser=duration(0, 86_400),
            help="How long to wait at the end until each partition has a record newer than every"
            " row that was read. After that time the table is shown in any case. With `rebuild"
            " --from snapshot`, how long to wait for the last row of a snapshot that has begun.",
        ),
    ] = 60.0
    again: Annotated[
        bool, typer.Option("--again", help="Abandon an earlier attempt, and start again.")
    ] = False
    give_up: Annotated[
        bool,
        typer.Option(
            "--give-up", help="Only abandon an earlier attempt; read and change nothing else."
        ),
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be read.")] = (
        False
    )
    certificates: CertificatesOption = None
    as_json: JsonOption = False
    wait: WaitOption = WAIT_SECONDS
    config: ConfigOption = None


@with_options_of(FillingOptions)
def bootstrap(
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--tables",
            help="Only tables whose `database.table` at the source matches this pattern (*, ?,"
            " […]). May be given several times.",
        ),
    ] = None,
    files: FilesOption = "",
    position: PositionOption = "",
    connector_ran: ConnectorRanOption = False,
    *,
    options: FillingOptions,
) -> None:
    """Fill new tables from their database while it is written to.

    Rows are read in chunks without locks, and the topics' changes are applied meanwhile. Readers
    see a table once it is complete. A table that exists is skipped. After an interruption the same
    command continues where it stopped. With --files rows come from files instead.
    """
    from lakesplice.model.progress.shadow_plan import FilledFrom

    if bool(files) != bool(position):
        raise UsageError("give --files and --position together, or none of them")
    request = replace(
        _request(tables or (), options),
        filled_from=FilledFrom.FILES if files else FilledFrom.DATABASE,
        files=files,
        position=position,
        connector_ran=connector_ran,
    )
    _fill(request, options)


@with_options_of(FillingOptions)
def rebuild(
    table: Annotated[
        str, typer.Argument(help="The table at the source, database.table.", show_default=False)
    ],
    source: FromOption = RebuildFrom.BOOTSTRAP,
    verify: VerifyOption = True,
    *,
    options: FillingOptions,
) -> None:
    """Fill a table again from its database or its topic, beside the one that readers see.

    The new content is compared with the database, and replaces the old one in one commit, once it
    has reached the old one's offsets. A running service makes that commit between two batches. If
    they differ, the table stays as it is, and its history says so.
    """
    from lakesplice.model.progress.shadow_plan import FilledFrom

    sources = {
        RebuildFrom.BOOTSTRAP: FilledFrom.DATABASE,
        RebuildFrom.TOPIC: FilledFrom.TOPIC,
        RebuildFrom.SNAPSHOT: FilledFrom.SNAPSHOT,
    }
    request = replace(
        _request((table,), options),
        rebuild=True,
        verify=verify,
        filled_from=sources[source],
    )
    _fill(request, options)


def _request(tables: Sequence[str], options: FillingOptions) -> FillRequest:
    from lakesplice.apps.bootstrap import FillRequest

    return FillRequest(
        tables=tables,
        again=options.again,
        give_up=options.give_up,
        dry_run=options.dry_run,
        excluded=options.excluded or (),
        settle_seconds=options.settle,
    )


def _fill(request: FillRequest, options: FillingOptions) -> None:
    import os

    from lakesplice.apps.bootstrap import Database, LoadBounds
    from lakesplice.apps.bootstrap import bootstrap as fill
    from lakesplice.apps.table_commands.dispatch import RequestWait
    from lakesplice.config import load
    from lakesplice.model.progress.shadow_plan import FilledFrom
    from lakesplice.storage.source.database import DatabaseAddress

    settings = load(options.config)
    named = options.database or settings.doctor.database
    is_read = request.filled_from is FilledFrom.DATABASE
    if named is None and not request.give_up and (request.verify or is_read):
        without = "" if is_read else ", or --no-verify,"
        raise UsageError(f"which database? give --database{without} or set doctor.database")
    source = None
    if named is not None:
        address = DatabaseAddress.of_server(named, os.environ.get(PASSWORD, ""))
        bounds = LoadBounds(
            options.connections,
            options.rows_per_second,
            options.chunk_rows,
            options.threads_running_max,
        )
        source = Database(address, bounds, options.certificates)
    with progress_bar("chunks") as progress:
        done = fill(settings, source, request, progress, RequestWait(options.wait))
        rows = [_printed_fields(asdict(one)) for one in done]
    show(rows, _COLUMNS, Listing.JSON if options.as_json else Listing.TABLE, "no topics match")
    if any(row["state"] not in _GOOD for row in rows):
        raise typer.Exit(1)


def _printed_fields(outcome: dict[str, Any]) -> dict[str, Any]:
    is_complete = outcome.pop("is_complete")
    return {**outcome, "complete": is_complete}
