"""The tables in a lake by name, found by their folders."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from lakesplice.errors import LakespliceError, TableNotFoundError, UsageError
from lakesplice.model.names import TableName
from lakesplice.storage.stores import (
    AnyStore,
    is_there,
    open_store,
    parent_store,
    require_usable_address,
)
from lakesplice.table.files.inner_tables import require_no_outer_table
from lakesplice.table.protocol.layout import LOG

LEVELS = 2
_PATTERN = re.compile(r"[*?\[]")
_NEAR, _NEAR_MAX = 0.6, 3


def existing_lake(address: str | Path, options: Mapping[str, str] | None = None) -> AnyStore:
    """Return the lake at an address; `TableNotFoundError` if there is nothing. `options` say how a
    bucket is reached, as `lake.options` do.
    """
    lake = open_store(address, options)
    if not is_there(lake):
        raise TableNotFoundError(
            "there is no lake here; give the folder that contains the tables' folders",
            path=str(address),
        )
    return lake


def table_names(lake: AnyStore) -> list[TableName]:
    """Return the lake's tables in order of name; none for a lake that doesn't exist yet."""
    paths = (
        f"{database}/{table}" for database in lake.folders() for table in lake.folders(database)
    )
    return sorted(TableName.from_path(path) for path in paths if LOG in lake.folders(path))


def require_lake(lake: AnyStore) -> None:
    """Check that tables can be made in a lake; `UsageError` if it, a database's folder in it or a
    folder above is itself a table. Blocks: lists the folders of both levels.
    """
    require_usable_address(lake)
    require_no_outer_table(lake.folders(), repr(lake))
    for database in lake.folders():
        require_no_outer_table(lake.folders(database), f"{lake!r} {database}")


def table_store(address: str | Path, options: Mapping[str, str] | None = None) -> AnyStore:
    """Return the store of the table at an address; `TableNotFoundError` if there is no table.

    `options` say how a bucket is reached, as `lake.options` do.
    """
    store = open_store(address, options)
    if LOG not in store.folders():
        raise TableNotFoundError(
            f"there is no table here; {_what_to_give_instead(store)}", path=str(address)
        )
    return store


def _what_to_give_instead(store: AnyStore) -> str:
    """Return what to give instead: the table with the most similar name, if there is one."""
    otherwise = "give the path <lake>/<database>/<table>"
    with suppress(LakespliceError, OSError):
        found = parent_store(store, LEVELS)
        if found is None:
            return otherwise
        lake, path = found
        database, _, table = path.partition("/")
        for folder in _near(database, lake.folders()):
            for name in _near(table, lake.folders(folder)):
                if LOG in lake.folders(f"{folder}/{name}"):
                    return f"did you mean {lake}/{folder}/{name}?"
    return otherwise


def _near(name: str, known: Sequence[str]) -> Sequence[str]:
    return difflib.get_close_matches(name, known, _NEAR_MAX, _NEAR)


def matching_tables(
    address: str, options: Mapping[str, str] | None = None
) -> tuple[AnyStore, list[TableName]]:
    """Return a lake and its tables that an address means: one, or all that match if the names of
    database and table are patterns (*, ?, […]). `TableNotFoundError` if none does; otherwise as
    `lake_of`.
    """
    outer, _, table = address.rstrip("/").rpartition("/")
    outer, _, database = outer.rpartition("/")
    if not _PATTERN.search(database + table):
        lake, name = lake_of(address, options)
        return lake, [name]
    lake = open_store(outer or ".", options)
    found = [
        name
        for name in table_names(lake)
        if fnmatchcase(name.database, database) and fnmatchcase(name.table, table)
    ]
    if not found:
        raise TableNotFoundError(
            "no table matches the pattern; `lakesplice tables` lists the lake's tables",
            path=address,
        )
    return lake, found


def lake_of(
    address: str | Path, options: Mapping[str, str] | None = None
) -> tuple[AnyStore, TableName]:
    """Return the lake that the table at an address belongs to, and the table's name in it;
    `options` as in `table_store`.
    """
    found = parent_store(table_store(address, options), LEVELS)
    if found is None:
        raise UsageError(
            "this isn't a table in a lake; give it as <lake>/<database>/<table>", path=str(address)
        )
    lake, path = found
    return lake, TableName.from_path(path)
