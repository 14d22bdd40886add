"""`lakesplice dlq`: records that could not be decoded, with the reason and their bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    WAIT_SECONDS,
    ConfigOption,
    TableArgument,
    WaitOption,
    lake_options,
    parse_offset,
    settings_of,
)
from lakesplice.apps.cli.output import (
    JsonOption,
    Listing,
    ListingOption,
    ResultOption,
    json_line,
    show,
    show_result,
    with_json,
)
from lakesplice.errors import TableNotFoundError, UsageError
from lakesplice.model.moments import EpochMs, utc_time

if TYPE_CHECKING:
    from lakesplice.table.files.dead_letters import DeadLetterSelection

app = typer.Typer(help="Dead letters: records that could not be decoded.", no_args_is_help=True)
_COLUMNS = (
    *("table", "partition", "offset", "time", "first_seen", "last_seen", "attempts"),
    "reason",
)
# These fields contain or quote values of rows, which not everybody may see.
_OF_RECORDS = ("key", "value", "headers", "detail")
_VALUE_BYTES_SHOWN = 120

PlacesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--letter",
        help="A dead letter's partition:offset. May be given several times.",
        show_default=False,
    ),
]
ReasonsOption = Annotated[
    list[str] | None,
    typer.Option("--reason", help="Dead letters with this reason. May be given several times."),
]
TopicOption = Annotated[
    str,
    typer.Option("--topic", help="Dead letters of this topic, if several topics feed the table."),
]


@app.command("list")
@with_json
def list_letters(
    address: Annotated[str, typer.Argument(help="A lake, or a table of it.", show_default=False)],
    limit: Annotated[int, typer.Option(min=1, help="How many to show at most.")] = 50,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Show what records contain: the detail of the reason, which may quote a value,"
            " and the start of the record's value; in JSON the whole value, in Base64.",
        ),
    ] = False,
    form: ListingOption = Listing.TABLE,
    config: ConfigOption = None,
) -> None:
    """List the dead letters of each table, newest first: where and when they were read, and why."""
    from lakesplice.apps.lake import table_names
    from lakesplice.storage.stores import is_there, open_store
    from lakesplice.table.protocol.layout import LOG

    root = open_store(address, lake_options(config))
    if not is_there(root):
        raise TableNotFoundError(
            "there is no lake or table here; give the folder of one", path=address
        )
    stores = (
        [(root, address.rstrip("/").rpartition("/")[2])]
        if LOG in root.folders()
        else [(root.within(name.path), str(name)) for name in table_names(root)]
    )
    letters = (row for store, name in stores for row in _letters(store, name))
    rows: Iterator[dict[str, Any]] = islice(letters, limit)
    if not values:
        rows = ({name: row[name] for name in row if name not in _OF_RECORDS} for row in rows)
    elif form is Listing.TABLE:
        rows = ({**row, "value": _excerpt(row["value"])} for row in rows)
    show(rows, (*_COLUMNS, "detail", "value") if values else _COLUMNS, form, "no dead letters")


@app.command("show")
def show_letter(
    table: TableArgument,
    place: Annotated[str, typer.Argument(help="The dead letter's partition:offset.")],
    value: Annotated[
        bool, typer.Option("--value", help="Write only the bytes of the value, as they were read.")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show one dead letter: where and when it was read, why, its headers, key and value."""
    from lakesplice.apps.lake import table_store
    from lakesplice.table.files.dead_letters import dead_letters_of
    from lakesplice.table.protocol.snapshot import open_snapshot

    store, wanted = table_store(table, lake_options(config)), parse_offset(place)
    letters = dead_letters_of(store, open_snapshot(store).manifest.dead_letters)
    found = [letter for letter in letters if (letter.partition, letter.offset) == wanted]
    if not found:
        raise UsageError("there is no such dead letter; see `lakesplice dlq list`", letter=place)
    letter = found[-1]
    if value:
        sys.stdout.buffer.write(letter.value or b"")
        return
    if as_json:
        print(json_line(asdict(letter)))
        return
    for name, fact in asdict(letter).items():
        typer.echo(f"{name:11} {_fact(name, fact)}")


@app.command()
def replay(
    table: TableArgument,
    letters: PlacesOption = None,
    reasons: ReasonsOption = None,
    topic: TopicOption = "",
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Decode all or some dead letters again, after their cause was removed.

    A record that can be decoded now changes its row, unless a newer change already did. The others
    remain dead letters. If no service is running, --config is needed: it says how to read records.
    """
    from lakesplice.apps.table_commands.dead_letters import selection_as_arguments
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.work import REPLAY

    arguments = selection_as_arguments(_chosen(letters, reasons, topic))
    settings, options = settings_of(config), lake_options(config)
    done = give_command(
        table, REPLAY, arguments, settings=settings, patience=RequestWait(wait), options=options
    )
    show_result(done, as_json=as_json)


@app.command()
def drop(
    table: TableArgument,
    why: Annotated[str, typer.Option(help="Why, for the table's history.")],
    letters: PlacesOption = None,
    reasons: ReasonsOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All dead letters of the table.")
    ] = False,
    topic: TopicOption = "",
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Delete dead letters for good: the given ones, those with a reason, or all."""
    from lakesplice.apps.table_commands.dead_letters import selection_as_arguments
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.work import DROP

    if everything == bool(letters or reasons):
        raise UsageError(
            "say which dead letters: with --letter, with --reason, or with --all alone"
        )
    arguments = {**selection_as_arguments(_chosen(letters, reasons, topic)), "why": why}
    done = give_command(
        table, DROP, arguments, patience=RequestWait(wait), options=lake_options(config)
    )
    show_result(done, as_json=as_json)


def _chosen(
    places: list[str] | None, reasons: list[str] | None, topic: str = ""
) -> DeadLetterSelection:
    from lakesplice.formats.events.values.refusals import DeadReason
    from lakesplice.model.parking import ParkCode
    from lakesplice.table.files.dead_letters import DeadLetterSelection

    known = {*(str(reason) for reason in DeadReason), *(str(code) for code in ParkCode)}
    for reason in reasons or ():
        if reason not in known:
            raise UsageError(
                "dead letters have no such reason; give one of the known ones",
                reason=reason,
                known=sorted(known),
            )
    return DeadLetterSelection(
        frozenset(map(parse_offset, places or ())), frozenset(reasons or ()), topic
    )


def _letters(store: Any, table: str) -> Iterator[dict[str, Any]]:
    from lakesplice.table.files.dead_letters import dead_letters_of
    from lakesplice.table.protocol.snapshot import open_snapshot

    letters = dead_letters_of(store, open_snapshot(store).manifest.dead_letters)
    for letter in sorted(letters, key=lambda one: (one.last_seen, one.place), reverse=True):
        row = asdict(letter)
        for name in ("first_seen", "last_seen"):
            row[name] = _moment(row[name])
        yield {"table": table, "time": _moment(row.pop("timestamp")), **row}


def _moment(timestamp_ms: EpochMs) -> datetime | int:
    """Return a producer's timestamp as a time, or unchanged if it isn't a valid time."""
    try:
        return utc_time(timestamp_ms)
    except (ValueError, OverflowError, OSError):
        return timestamp_ms


def _fact(name: str, fact: Any) -> str:
    if name in ("timestamp", "first_seen", "last_seen"):
        return str(_moment(fact))
    return repr(fact) if isinstance(fact, bytes) else str(fact)


def _excerpt(value: bytes | None) -> str:
    """Return the start of a payload as text without characters that could control a terminal."""
    if value is None:
        return "(none)"
    more = f"… ({len(value)} bytes)" if len(value) > _VALUE_BYTES_SHOWN else ""
    return value[:_VALUE_BYTES_SHOWN].decode("utf-8", errors="backslashreplace") + more
