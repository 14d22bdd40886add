"""`lakesplice pin`, `pins` and `unpin`: versions of a lake's tables that are kept under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    LONGEST_SECONDS,
    WAIT_SECONDS,
    ConfigOption,
    LakeArgument,
    OnlyTablesOption,
    WaitOption,
    duration,
    lake_options,
)
from lakesplice.apps.cli.output import Listing, ListingOption, ResultOption, show, show_result
from lakesplice.model.moments import NO_MOMENT, EpochMs, later, utc_time

if TYPE_CHECKING:
    from pathlib import Path

    from lakesplice.apps.table_commands.pinning import ListedPin
    from lakesplice.storage.stores import AnyStore

_COLUMNS = ("name", "state", "tables", "created", "ends", "complete_until")
NameArgument = Annotated[str, typer.Argument(help="The pin's name.", show_default=False)]


def pin(
    lake: LakeArgument,
    name: NameArgument,
    tables: OnlyTablesOption = None,
    expires: Annotated[
        float | None,
        typer.Option(
            "--expires",
            parser=duration(60, LONGEST_SECONDS),
            help="When the pin ends, such as 30d from now; without this option it never ends.",
        ),
    ] = None,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Keep the newest versions of a lake's tables under a name, whatever the retention.

    `lakesplice read --pin`, `Table.open(…, pin=…)` and Spark's option `pin` read them. A running
    service does it between two batches.
    """
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.dispatch import RequestWait
    from lakesplice.apps.table_commands.pinning import pin_lake

    patience = RequestWait(wait)
    ends_ms = NO_MOMENT if expires is None else later(patience.clock.now_ms(), expires)
    made = pin_lake(_lake(lake, config), name, tables or [], ends_ms, patience)
    until = "" if made.complete_ms is None else f", complete up to {_moment(made.complete_ms)}"
    ends = f"; the pin ends at {_moment(ends_ms)}" if ends_ms else ""
    text = f"{len(made.tables)} tables pinned as {name}{until}{ends}"
    values = {
        "name": name,
        "versions": dict(made.tables),
        "complete_until": None if made.complete_ms is None else _moment(made.complete_ms),
        "ends": _moment(ends_ms) if ends_ms else None,
    }
    show_result(CommandResult(text, values), as_json=as_json)


def pins(
    lake: LakeArgument, form: ListingOption = Listing.TABLE, config: ConfigOption = None
) -> None:
    """List a lake's pins: their state, when they end, and up to when their tables are complete."""
    from lakesplice.apps.table_commands.pinning import listed_pins
    from lakesplice.storage.system import SystemClock

    now_ms = SystemClock().now_ms()
    rows = (_row(found, now_ms) for found in listed_pins(_lake(lake, config)))
    show(rows, _COLUMNS, form, "no pins")


def unpin(
    lake: LakeArgument,
    name: NameArgument,
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Remove a pin: a later vacuum deletes the files that only it kept."""
    from lakesplice.apps.table_commands.command_table import CommandResult
    from lakesplice.apps.table_commands.dispatch import RequestWait
    from lakesplice.apps.table_commands.pinning import unpin_lake

    count = unpin_lake(_lake(lake, config), name, RequestWait(wait))
    text = f"{count} tables aren't pinned as {name} any more"
    show_result(CommandResult(text, {"name": name, "tables": count}), as_json=as_json)


def _lake(address: str, config: Path | None) -> AnyStore:
    from lakesplice.apps.lake import existing_lake

    return existing_lake(address, lake_options(config))


def _row(found: ListedPin, now_ms: EpochMs) -> dict[str, Any]:
    whole = found.whole
    if whole is None:
        return {"name": found.name, "state": "incomplete", "tables": found.tables}
    ended = 0 < whole.ends_ms <= now_ms
    state = "ended" if ended else "incomplete" if found.missing else "complete"
    return {
        "name": found.name,
        "state": state,
        "tables": found.tables,
        "created": _moment(whole.created_ms),
        "ends": _moment(whole.ends_ms) if whole.ends_ms else None,
        "complete_until": None if whole.complete_ms is None else _moment(whole.complete_ms),
        "missing": list(found.missing),
        "versions": dict(whole.tables),
    }


def _moment(time_ms: EpochMs) -> str:
    return utc_time(time_ms).isoformat(timespec="seconds")
