"""The tables at an address, as views for another engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress

from lakesplice.apps.lake import LEVELS, table_names
from lakesplice.errors import TableNotFoundError, UsageError
from lakesplice.model.names import TableName
from lakesplice.planning.engine_views.engines import Engine
from lakesplice.planning.engine_views.view_sql import (
    EngineView,
    ShownTable,
    engine_view,
    require_distinct_names,
)
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import AnyStore, is_there, open_store, parent_store
from lakesplice.table.protocol.layout import LOG
from lakesplice.table.protocol.snapshot import open_snapshot


def engine_views(
    address: str,
    engine: Engine,
    location: str | None = None,
    options: Mapping[str, str] | None = None,
) -> list[EngineView]:
    """Return the view of the table at an address, or of each table of the lake there, by name.

    `location` is the lake's address for the engine, by default that of the store. A lake's tables
    without a version are left out. `TableNotFoundError` if there is nothing, `UsageError` if the
    engine can't read there. Blocks on the store.
    """
    store = open_store(address, options)
    lake, paths = _tables(store, address)
    require_distinct_names(map(TableName.from_path, paths))
    above = _address(lake) if location is None else location.rstrip("/")
    views = []
    # If the table was named, it is an error that it has no version.
    for path in paths:
        with suppress(TableNotFoundError) if lake is store else nullcontext():
            views.append(engine_view(engine, _shown_table(lake, path, f"{above}/{path}")))
    return views


def _tables(store: AnyStore, address: str) -> tuple[AnyStore, list[str]]:
    """Return a lake, and the folders of those of its tables that the address means."""
    if not is_there(store):
        raise TableNotFoundError("there is no lake or table here; give its folder", path=address)
    if LOG not in store.folders():
        return store, [name.path for name in table_names(store)]
    found = parent_store(store, LEVELS)
    if found is None:
        raise UsageError(
            "this isn't a table in a lake; give it as <lake>/<database>/<table>", path=address
        )
    lake, path = found
    return lake, [path]


def _shown_table(lake: AnyStore, path: str, location: str) -> ShownTable:
    snapshot = open_snapshot(lake.within(path))
    schema = snapshot.manifest.schema
    return ShownTable(TableName.from_path(path), path, location, snapshot.version, schema)


def _address(lake: AnyStore) -> str:
    return str(lake.root.absolute()) if isinstance(lake, LocalStore) else lake.address
