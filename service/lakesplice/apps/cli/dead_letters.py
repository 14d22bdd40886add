"""`lakesplice dlq`: records that could not be decoded, with the reason and their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer

from lakesplice.apps.cli.output import Listing, ListingOption, show
from lakesplice.errors import UsageError

app = typer.Typer(help="Dead letters: records that could not be decoded.", no_args_is_help=True)
_COLUMNS = ("table", "partition", "offset", "time", "reason", "detail", "value")
_VALUE_BYTES_SHOWN = 120


@app.callback()
def _group() -> None:
    """Keep `list` a command of its own while it is the only one."""


@app.command("list")
def list_letters(
    address: Annotated[str, typer.Argument(help="A lake, or a table of it.", show_default=False)],
    limit: Annotated[int, typer.Option(min=1, help="The most that are shown.")] = 50,
    form: ListingOption = Listing.TABLE,
) -> None:
    """List dead letters, of each table the newest first; JSON holds them whole, in Base64."""
    from lakesplice.apps.lake import table_names
    from lakesplice.storage.places import is_there, open_store
    from lakesplice.table.layout import LOG

    root = open_store(address)
    if not is_there(root):
        raise UsageError("there is no such folder; give a lake or a table", path=address)
    stores = (
        [(root, address.rstrip("/").rpartition("/")[2])]
        if LOG in root.folders()
        else [(root.within(name.path), str(name)) for name in table_names(root)]
    )
    letters = (row for store, name in stores for row in _letters(store, name))
    rows: Iterator[dict[str, Any]] = islice(letters, limit)
    if form is Listing.TABLE:
        rows = ({**row, "value": _excerpt(row["value"])} for row in rows)
    show(rows, _COLUMNS, form, "no dead letters")


def _letters(store: Any, table: str) -> Iterator[dict[str, Any]]:
    from lakesplice.table.dead_letters import read_dead_letters
    from lakesplice.table.snapshot import open_snapshot

    for ref in reversed(open_snapshot(store).manifest.dead_letters):
        for row in reversed(read_dead_letters(store, ref).to_pylist()):
            yield {"table": table, "time": _moment(row.pop("timestamp")), **row}


def _moment(timestamp_ms: int) -> datetime | int:
    """Return a producer's timestamp as a time, or as it is when it is none."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return timestamp_ms


def _excerpt(value: bytes | None) -> str:
    """Return the start of a payload as text that can't steer a terminal."""
    if value is None:
        return "(none)"
    more = f"… ({len(value)} bytes)" if len(value) > _VALUE_BYTES_SHOWN else ""
    return value[:_VALUE_BYTES_SHOWN].decode("utf-8", errors="backslashreplace") + more
