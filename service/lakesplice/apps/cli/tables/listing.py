"""`lakesplice tables`, `history` and `unpark`: a lake's tables, a table's versions, and the end of
a parking.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.options import (
    WAIT_SECONDS,
    ConfigOption,
    LakeArgument,
    TableArgument,
    WaitOption,
    lake_options,
    parse_offset,
)
from lakesplice.apps.cli.output import Listing, ListingOption, ResultOption, show, show_result
from lakesplice.errors import TableNotFoundError, UsageError
from lakesplice.model.moments import EpochMs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakesplice.table.protocol.history import HistoryEntry

_HISTORY_COLUMNS = ("version", "time", "operation", "source", "metrics")


def tables(
    lake: LakeArgument, form: ListingOption = Listing.TABLE, config: ConfigOption = None
) -> None:
    """List a lake's tables, and topics without a table: the state of each, and why some are
    stopped.
    """
    from lakesplice.apps.cli.tables.lake_overview import print_overview
    from lakesplice.apps.lake_listing import listing
    from lakesplice.storage.stores import is_there, open_store
    from lakesplice.table.driver.status import newest_status

    root = open_store(lake, lake_options(config))
    if not is_there(root):
        raise TableNotFoundError(
            "there is no lake here; give the folder that contains the tables' folders", path=lake
        )
    status, now_ms = newest_status(root), round(time.time() * 1000)
    rows = listing(root, status, EpochMs(now_ms))
    if form is Listing.JSON:
        show(rows, (), form, "")
    else:
        print_overview(rows, status, now_ms, str(lake))


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


def unpark(
    table: TableArgument,
    from_offset: Annotated[
        list[str] | None,
        typer.Option(
            help="Continue a partition at another offset, as partition:offset. Records in"
            " between are skipped, or read again, which does no harm. May be given for each"
            " partition.",
        ),
    ] = None,
    new_epoch: Annotated[
        bool,
        typer.Option(
            help="Positions fell back because another server took over or the binlog was reset:"
            " all further changes count as newer than the earlier ones.",
        ),
    ] = False,
    repeated: Annotated[
        bool,
        typer.Option(
            help="Positions fell back because the source repeats changes: those at or below"
            " their row's position have no effect.",
        ),
    ] = False,
    topic: Annotated[str, typer.Option(help="Which topic, if several feed the table.")] = "",
    as_json: ResultOption = False,
    wait: WaitOption = WAIT_SECONDS,
    config: ConfigOption = None,
) -> None:
    """Let a parked table continue, where it stopped or at the given offsets."""
    from lakesplice.apps.table_commands.dispatch import RequestWait, give_command
    from lakesplice.apps.table_commands.work import UNPARK
    from lakesplice.planning.sources.operator_directions import FallBack

    if new_epoch and repeated:
        raise UsageError("give either --new-epoch or --repeated, not both", table=table)
    offsets = sorted(dict(map(parse_offset, from_offset or [])).items())
    stated = FallBack.NEW_EPOCH if new_epoch else FallBack.REPEATED if repeated else None
    arguments = {"offsets": offsets, "stated": stated, "topic": topic}
    done = give_command(
        table, UNPARK, arguments, patience=RequestWait(wait), options=lake_options(config)
    )
    show_result(done, as_json=as_json)


def _moves(entry: HistoryEntry) -> str:
    """The offsets that a version read, of each topic if there are several."""
    named = (f"{topic} {_ranges(moved)}" for topic, moved in entry.sources.items())
    return "; ".join(named) or _ranges(entry.source)


def _ranges(source: Mapping[int, tuple[int, int]] | None) -> str:
    moves = (source or {}).items()
    return " ".join(f"{number}:{start}-{end}" for number, (start, end) in moves)


def _joined(counts: dict[str, Any]) -> str:
    return " ".join(f"{name}={count}" for name, count in counts.items() if count)
