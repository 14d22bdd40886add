"""`lakesplice bootstrap` and `rebuild`: tables filled from their database or their topic."""

from __future__ import annotations

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
)
from lakesplice.apps.cli.output import JsonOption, Listing, show
from lakesplice.apps.cli.progress import progress_bar
from lakesplice.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from lakesplice.apps.bootstrap import LoadBounds, Wishes


class RebuildFrom(StrEnum):
    """Where a rebuilt table's rows come from."""

    BOOTSTRAP = "bootstrap"
    TOPIC = "topic"
    SNAPSHOT = "snapshot"


_COLUMNS = ("table", "state", "rows", "chunks", "seconds", "complete", "verified", "detail")
_NO_SNAPSHOT = (
    "a snapshot by the connector can't fill a table beside the live one: its rows come into the"
    " topic that feeds both, and no record says that they are all there; give --from bootstrap,"
    " which reads the same rows itself"
)
_GOOD = ("filled", "planned", "given up", "exists")
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="The source's server, mysql://user@host:3306; without it, doctor.database of the"
        f" configuration. The password is taken from {PASSWORD}.",
        show_default=False,
    ),
]
ConnectionsOption = Annotated[
    int,
    typer.Option("--connections", min=1, max=64, help="How many connections read at once, in all."),
]
RateOption = Annotated[
    int,
    typer.Option(
        "--rows-per-second", min=0, help="Read at most so many rows per second; 0: no bound."
    ),
]
ChunkOption = Annotated[
    int, typer.Option("--chunk-rows", min=1, max=1_000_000, help="About how many rows a chunk has.")
]
ThreadsOption = Annotated[
    int,
    typer.Option(
        "--threads-running-max",
        min=1,
        help="Start no chunk while more threads of the server than this are running.",
    ),
]
ExcludedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--excluded",
        help="A column that the connector leaves out, as `column` or `table.column`. May be given"
        " several times.",
    ),
]
SettleOption = Annotated[
    float,
    typer.Option(
        "--settle",
        parser=duration(0, 86_400),
        help="How long to wait at the end until each partition has a record newer than every row "
        "that was read. After that time the table is shown in any case.",
    ),
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Abandon an earlier attempt, and start again.")
]
GiveUpOption = Annotated[
    bool,
    typer.Option(
        "--give-up", help="Only abandon an earlier attempt; read and change nothing else."
    ),
]
FromOption = Annotated[
    RebuildFrom,
    typer.Option(
        "--from",
        help="Where the rows come from: `bootstrap` reads them from the database, `topic` replays"
        " the topic from its first record. `snapshot`, a snapshot by the connector, is refused"
        " with the reason.",
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
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be read.")]
_CONNECTIONS, _CHUNK_ROWS, _THREADS, _SETTLE_SECONDS = 4, 20_000, 50, 60.0


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
    database: DatabaseOption = None,
    connections: ConnectionsOption = _CONNECTIONS,
    rows_per_second: RateOption = 0,
    chunk_rows: ChunkOption = _CHUNK_ROWS,
    threads_running_max: ThreadsOption = _THREADS,
    excluded: ExcludedOption = None,
    settle: SettleOption = _SETTLE_SECONDS,
    again: AgainOption = False,
    give_up: GiveUpOption = False,
    dry_run: DryRunOption = False,
    certificates: CertificatesOption = None,
    as_json: JsonOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Fill new tables from their database while it is written to.

    Rows are read in chunks without locks, and the topics' changes are applied meanwhile. Readers
    see a table once it is complete. A table that exists is skipped. After an interruption the same
    command continues where it stopped. With --files rows come from files instead.
    """
    from lakesplice.apps.bootstrap import LoadBounds, Wishes
    from lakesplice.model.progress.shadow_plan import FilledFrom

    if bool(files) != bool(position):
        raise UsageError("give --files and --position together, or none of them")
    wishes = Wishes(
        tables=tables or (),
        filled_from=FilledFrom.FILES if files else FilledFrom.DATABASE,
        files=files,
        position=position,
        connector_ran=connector_ran,
        again=again,
        give_up=give_up,
        dry_run=dry_run,
        excluded=excluded or (),
        settle_seconds=settle,
    )
    bounds = LoadBounds(connections, rows_per_second, chunk_rows, threads_running_max)
    _fill(wishes, bounds, database, certificates, wait, config, as_json=as_json)


def rebuild(
    table: Annotated[
        str, typer.Argument(help="The table at the source, database.table.", show_default=False)
    ],
    source: FromOption = RebuildFrom.BOOTSTRAP,
    verify: VerifyOption = True,
    database: DatabaseOption = None,
    connections: ConnectionsOption = _CONNECTIONS,
    rows_per_second: RateOption = 0,
    chunk_rows: ChunkOption = _CHUNK_ROWS,
    threads_running_max: ThreadsOption = _THREADS,
    excluded: ExcludedOption = None,
    settle: SettleOption = _SETTLE_SECONDS,
    again: AgainOption = False,
    give_up: GiveUpOption = False,
    dry_run: DryRunOption = False,
    certificates: CertificatesOption = None,
    as_json: JsonOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Fill a table again from its database or its topic, beside the one that readers see.

    The new content is compared with the database, and replaces the old one in one commit, once it
    has reached the old one's offsets. A running service makes that commit between two batches. If
    they differ, the table stays as it is, and its history says so.
    """
    from lakesplice.apps.bootstrap import LoadBounds, Wishes
    from lakesplice.model.progress.shadow_plan import FilledFrom

    if source is RebuildFrom.SNAPSHOT:
        raise UsageError(_NO_SNAPSHOT)

    wishes = Wishes(
        tables=(table,),
        rebuild=True,
        verify=verify,
        filled_from=FilledFrom.TOPIC if source is RebuildFrom.TOPIC else FilledFrom.DATABASE,
        again=again,
        give_up=give_up,
        dry_run=dry_run,
        excluded=excluded or (),
        settle_seconds=settle,
    )
    bounds = LoadBounds(connections, rows_per_second, chunk_rows, threads_running_max)
    _fill(wishes, bounds, database, certificates, wait, config, as_json=as_json)


def _fill(
    wishes: Wishes,
    bounds: LoadBounds,
    database: str | None,
    certificates: str | None,
    wait: float,
    config: Path | None,
    *,
    as_json: bool,
) -> None:
    import os
    from dataclasses import asdict

    from lakesplice.apps.bootstrap import Database, bootstrap
    from lakesplice.apps.table_commands.dispatch import RequestWait
    from lakesplice.config import load
    from lakesplice.model.progress.shadow_plan import FilledFrom
    from lakesplice.storage.source.database import DatabaseAddress

    settings = load(config)
    named = database or settings.doctor.database
    is_read = wishes.filled_from is FilledFrom.DATABASE
    if named is None and not wishes.give_up and (wishes.verify or is_read):
        without = "" if is_read else ", or --no-verify,"
        raise UsageError(f"which database? give --database{without} or set doctor.database")
    source = None
    if named is not None:
        address = DatabaseAddress.of_server(named, os.environ.get(PASSWORD, ""))
        source = Database(address, bounds, certificates)
    with progress_bar("chunks") as progress:
        done = bootstrap(settings, source, wishes, progress, RequestWait(wait))
        rows = [_shown(asdict(one)) for one in done]
    show(rows, _COLUMNS, Listing.JSON if as_json else Listing.TABLE, "no topics match")
    if any(row["state"] not in _GOOD for row in rows):
        raise typer.Exit(1)


def _shown(outcome: dict[str, Any]) -> dict[str, Any]:
    is_complete = outcome.pop("is_complete")
    return {**outcome, "complete": is_complete}
