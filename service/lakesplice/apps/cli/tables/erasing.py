"""`lakesplice erase`: removes the values of rows from every byte of a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakesplice.apps.erasing.searched_table import SearchResult
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.planning.keys.requested_key import KeyValues

_FOUND = 1
_TEMPORARIES_MS = 60_000


KeysOption = Annotated[
    Path,
    typer.Option(
        "--keys",
        exists=True,
        dir_okay=False,
        help="A file with one key per line: its value in JSON or as text; for a key of several "
        "columns an array in key order, or an object by column.",
        show_default=False,
    ),
]
ValuesOption = Annotated[
    Path | None,
    typer.Option(
        "--values",
        exists=True,
        dir_okay=False,
        help="A file with further values of the rows, one per line, to search for afterwards.",
        show_default=False,
    ),
]
SearchOption = Annotated[
    bool,
    typer.Option(
        "--search/--no-search",
        help="Read every byte of the table afterwards, and search it for the keys, their hashes and"
        " --values.",
    ),
]


def erase(
    table: TableArgument,
    keys: KeysOption,
    also_live: Annotated[
        bool,
        typer.Option("--also-live", help="Erase rows that aren't deleted, too."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Change nothing, only show what the table has of the rows."),
    ] = False,
    values: ValuesOption = None,
    search: SearchOption = True,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Erase rows: their values are removed from every file of the table, and all older versions
    end.

    Records of these rows that are read again have no effect; rows that the source inserts later are
    new. If a version is pinned, the command is refused. While a service executes this command, it
    reads no records.
    """
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.erasing import keys_in

    options = lake_options(config)
    asked = keys_in(keys.read_text(encoding="utf-8"))
    if dry_run:
        done = _planned(table, asked, options)
    else:
        done = _erased(table, asked, options, wait, also_live=also_live)
    found = _searched(table, asked, values, options) if search else None
    text, facts = done.text, dict(done.facts)
    if found is not None:
        facts["search"] = asdict(found)
        text += f"\n{_search_result_text(found)}"
    show_result(CommandResult(text, facts), as_json=as_json)
    if found is not None and found.found and not dry_run:
        raise typer.Exit(_FOUND)


def _planned(table: str, keys: list[KeyValues], options: Mapping[str, str]) -> CommandResult:
    from lakesplice import Table
    from lakesplice.apps.table_commands.command_table import CommandResult

    found = Table.open(table, options=options).erase(keys, dry_run=True)
    text = (
        f"{found.rows} rows of {found.keys} keys, {found.live} of them not deleted; {found.files}"
        f" base files, {found.runs} index runs and {found.deltas} deltas would be rewritten,"
        f" {found.dead_letters} dead letters dropped"
    )
    return CommandResult(text, asdict(found))


def _erased(
    table: str, keys: list[KeyValues], options: Mapping[str, str], wait: float, *, also_live: bool
) -> CommandResult:
    from lakesplice import Table
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.erasing import result_of
    from lakesplice.apps.table_commands.work import ERASE

    opened = Table.open(table, options=options)
    if opened.snapshot.manifest.is_fed_by_hand:
        with progress_bar(ERASE) as progress:
            done = result_of(opened.erase(keys, also_live=also_live, progress=progress))
    else:
        arguments: dict[str, Any] = {"keys": keys, "also_live": also_live}
        with progress_bar(ERASE) as progress:
            done = give_command(
                table,
                ERASE,
                arguments,
                patience=RequestWait(wait),
                options=options,
                progress=progress,
            )
    _forget_work(table, options)
    return done


def _forget_work(table: str, options: Mapping[str, str]) -> None:
    """Delete what commands store beside the table: sums of an interrupted verification, whose
    bounds are keys, and incomplete files of dead processes.
    """
    from lakesplice.apps.lake import lake_of
    from lakesplice.errors import UsageError
    from lakesplice.model.moments import EpochMs
    from lakesplice.storage.stores import drop_temporaries
    from lakesplice.storage.system import SystemClock

    try:
        lake, name = lake_of(table, options)
    except UsageError:
        return  # a table fed by hand may be in any folder
    for path in list(lake.list(f"_lakesplice/verify/{name.path}/")):
        lake.delete(path)
    drop_temporaries(lake, EpochMs(SystemClock().now_ms() - _TEMPORARIES_MS))


def _searched(
    table: str, keys: list[KeyValues], values: Path | None, options: Mapping[str, str]
) -> SearchResult:
    from lakesplice import Table
    from lakesplice.apps.erasing.byte_search import values_of
    from lakesplice.apps.erasing.searched_table import search_table, values_of_keys
    from lakesplice.apps.lake import table_store
    from lakesplice.table.upkeep.erasing.found_parts import WantedKeys

    schema = Table.open(table, options=options).snapshot.manifest.schema
    wanted = values_of_keys(schema, WantedKeys.requested(schema, keys))
    wanted += [] if values is None else values_of(values.read_text(encoding="utf-8"))
    with progress_bar("searching") as progress:
        return search_table(table_store(table, options), wanted, progress)


def _search_result_text(found: SearchResult) -> str:
    head = (
        f"{found.values} keys, hashes and values searched in every byte of {found.files} files"
        f" ({found.bytes} bytes): "
    )
    if not found.found:
        return head + "none found"
    places = (f"\n  {count} in {path}" for path, count in sorted(found.found.items()))
    return f"{head}found{''.join(places)}"
