"""Tables inside a table's folder, of Lakesplice and of others.

Only a table's log knows which files are its rows. So files that belong to an inner table are
neither rows of the outer table nor its orphans.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakesplice.errors import UsageError
from lakesplice.table.protocol.layout import LOG
from lakesplice.table.protocol.ports import Store

# In these folders Delta, Hudi and Spark's streams record which files a table has.
LOGS = frozenset((LOG, ".hoodie", "_spark_metadata"))
# Iceberg's folder has an ordinary name, so it is recognised by its content.
ICEBERG, _ICEBERG_SUFFIX = "metadata", ".metadata.json"


def inner_tables(paths: Iterable[str]) -> frozenset[str]:
    """Return the folders of the tables inside a folder with these paths, without the folder
    itself.
    """
    found = set()
    for path in paths:
        parts = path.split("/")
        for at, part in enumerate(parts[1:-1], 1):
            iceberg = part == ICEBERG and path.endswith(_ICEBERG_SUFFIX)
            if part in LOGS or iceberg:
                found.add("/".join(parts[:at]))
                break
    return frozenset(found)


def is_within(path: str, tables: frozenset[str]) -> bool:
    """Return whether a path is in the folder of one of the tables."""
    if not tables:
        return False
    parts = path.split("/")
    return any("/".join(parts[:at]) in tables for at in range(1, len(parts)))


def require_no_inner_tables(store: Store) -> None:
    """Check that there is no table inside the folder; `UsageError` names those found. Blocks: lists
    it.
    """
    found = inner_tables(store.list(""))
    if found:
        raise UsageError(
            "the folder contains other tables; give the path of one table, or an empty folder",
            store=repr(store),
            tables=sorted(found)[:10],
        )


def require_no_outer_table(
    folders: Iterable[str], store: object, metadata: Iterable[str] = ()
) -> None:
    """Check that no folder above is a table: it would have one of these folders, or one of the
    files in its folder `metadata`. `UsageError` if one is.
    """
    iceberg = any(name.endswith(_ICEBERG_SUFFIX) for name in metadata)
    if iceberg or not LOGS.isdisjoint(folders):
        raise UsageError(
            "this folder or one above it is a table, whose readers and writers would take the new"
            " files for their own; give a path outside of it",
            table=store,
        )
