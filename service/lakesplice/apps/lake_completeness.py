"""Up to which moment all tables of a lake are complete, by what its driver published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakesplice.apps.lake import existing_lake, table_names
from lakesplice.errors import TableNotFoundError
from lakesplice.model.driver_status import DriverStatus, TopicState
from lakesplice.model.names import names_list
from lakesplice.storage.stores import AnyStore
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.snapshot import open_snapshot


@dataclass(frozen=True, slots=True)
class Completeness:
    """How complete some tables of a lake are.

    The real-time view of each has every change that its source made until `until`, by the times of
    the records; None if that isn't known of a table, or if no topic feeds any. `oldest` are the
    tables that are complete only up to then, or of which it isn't known. Tables `with_gaps` lack
    records from before, which were passed over.
    """

    until: datetime | None
    oldest: tuple[str, ...]
    with_gaps: tuple[str, ...]


def completeness(
    lake: str | Path, tables: str | Sequence[str] = (), options: dict[str, str] | None = None
) -> Completeness:
    """Return how complete the tables of a lake are, of those whose `database.table` matches a
    pattern if any is given.

    `options` say how a bucket is reached. Blocks: reads the driver's last status, then each table.
    `TableNotFoundError` if there is no such lake, or no such table.
    """
    patterns = names_list(tables)
    store = existing_lake(lake, options)
    # Before the tables are read: they have at least what the status says.
    status = newest_status(store)
    names = [name for name in table_names(store) if name.matches(patterns)]
    if not names:
        raise TableNotFoundError(
            "the lake has no such table; `lakesplice tables` lists them", patterns=patterns
        )
    gaps = tuple(str(name) for name in names if _has_gaps(store, name.path))
    chosen = {str(name) for name in names}
    if status is None:
        return Completeness(None, (), gaps)
    until = status.complete_until(chosen)
    moment = None if until is None else datetime.fromtimestamp(until / 1000, UTC)
    return Completeness(moment, _oldest(status, chosen, until), gaps)


def _has_gaps(store: AnyStore, path: str) -> bool:
    sources = open_snapshot(store.within(path)).manifest.sources
    return any(source.gaps for source in sources.values())


def _oldest(status: DriverStatus, tables: set[str], until: int | None) -> tuple[str, ...]:
    fed = (one for one in status.topics if one.table in tables)
    read = (one for one in fed if one.standing.state is not TopicState.EXCLUDED)
    return tuple(sorted({one.table for one in read if one.real_time_ms == until}))
