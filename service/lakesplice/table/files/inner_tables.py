"""Tables within a table's folder, of ours and of others.

Which of a table's files are its rows only its log knows. So the files below an inner log are no
rows of the outer table, nor orphans of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakesplice.errors import UsageError
from lakesplice.table.protocol.layout import LOG
from lakesplice.table.protocol.ports import Store

# Folders by which Delta, Hudi and Spark's streams say what a table's files are.
LOGS = frozenset((LOG, ".hoodie", "_spark_metadata"))
# Iceberg's has a plain name, so it is recognised by its content.
ICEBERG, _ICEBERG_SUFFIX = "metadata", ".metadata.json"


def inner_tables(paths: Iterable[str]) -> frozenset[str]:
    """Return the folders of the tables within a folder that holds these paths, not its own."""
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
    """Return if there is no table within the folder; `UsageError` names them. Blocks: lists it."""
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
    """Return unless what is in a folder above shows that it is a table: one of these folders, or
    one of the files in its folder `metadata`.
    """
    iceberg = any(name.endswith(_ICEBERG_SUFFIX) for name in metadata)
    if iceberg or not LOGS.isdisjoint(folders):
        raise UsageError(
            "this folder or one above it is a table, whose readers and writers would take the new"
            " files for their own; give a path outside of it",
            table=store,
        )
