"""`lakesplice tables`, `complete` and `history`: a lake's tables, and a table's versions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    ConfigOption,
    LakeArgument,
    OnlyTablesOption,
    TableArgument,
    lake_options,
)
from lakesplice.apps.cli.output import JsonOption, Listing, ListingOption, json_line, show
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import OffsetRanges

if TYPE_CHECKING:
    from lakesplice.table.protocol.history import HistoryEntry

_HISTORY_COLUMNS = ("version", "time", "operation", "source", "metrics")


def tables(
    lake: LakeArgument, form: ListingOption = Listing.TABLE, config: ConfigOption = None
) -> None:
    """List a lake's tables, and topics without a table: the state of each, and why some are
    stopped.
    """
    from lakesplice.apps.cli.tables.showing.lake_overview import print_overview
    from lakesplice.apps.lake import existing_lake
    from lakesplice.apps.lake_listing import listing
    from lakesplice.table.driver.status import newest_status, unheard_driver

    root = existing_lake(lake, lake_options(config))
    status, now_ms = newest_status(root), EpochMs(round(time.time() * 1000))
    rows = listing(root, status, now_ms)
    if form is Listing.JSON:
        show(rows, (), form, "")
    else:
        print_overview(rows, status, now_ms, str(lake), unheard_driver(root, status))


def complete(
    lake: LakeArgument,
    tables: OnlyTablesOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show up to which moment all tables of a lake are complete, and which tables hold it back.

    The moment is the one that the service published last, by the times of the records in the
    topics.
    """
    from lakesplice import completeness

    found = completeness(lake, tables or (), dict(lake_options(config)))
    until = None if found.until is None else found.until.isoformat(timespec="milliseconds")
    if as_json:
        facts = {"until": until, "oldest": list(found.oldest), "with_gaps": list(found.with_gaps)}
        typer.echo(json_line(facts))
        return
    oldest = f" ({', '.join(found.oldest)})" if found.oldest else ""
    typer.echo(f"not known{oldest}" if until is None else f"{until}{oldest}")
    if found.with_gaps:
        typer.echo(f"lack records that were passed over: {', '.join(found.with_gaps)}", err=True)


def history(
    table: TableArgument,
    limit: Annotated[
        int, typer.Option(min=1, help="How many of the newest versions to show.")
    ] = 20,
    form: ListingOption = Listing.TABLE,
    config: ConfigOption = None,
) -> None:
    """List a table's versions, newest first: time, operation, counts, and offsets in its topic."""
    from itertools import islice

    from lakesplice.apps.lake import table_store
    from lakesplice.apps.lake_listing import moment
    from lakesplice.table.protocol.history import history as versions

    def row(entry: Any) -> dict[str, Any]:
        info = entry.info
        counts: dict[str, Any] = dict(info.metrics)
        noted = {name: info.parameters[name] for name in ("by", "why") if name in info.parameters}
        if entry.gaps is not None:
            noted["gaps"] = entry.gaps or "none"
        return {
            "version": entry.version,
            "time": moment(info.timestamp_ms),
            "operation": info.operation,
            "source": _moves(entry) if form is Listing.TABLE else entry.sources or entry.source,
            "metrics": counts if form is Listing.JSON else _joined(counts | noted),
            **(noted if form is Listing.JSON else {}),
        }

    entries = islice(versions(table_store(table, lake_options(config))), limit)
    show(map(row, entries), _HISTORY_COLUMNS, form, "no versions")


def _moves(entry: HistoryEntry) -> str:
    """The offsets that a version read, of each topic if there are several."""
    named = (f"{topic} {_ranges(moved)}" for topic, moved in entry.sources.items())
    return "; ".join(named) or _ranges(entry.source)


def _ranges(source: OffsetRanges | None) -> str:
    moves = (source or {}).items()
    return " ".join(f"{number}:{start}-{end}" for number, (start, end) in moves)


def _joined(counts: dict[str, Any]) -> str:
    return " ".join(f"{name}={count}" for name, count in counts.items() if count)
