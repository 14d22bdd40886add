"""What is in a lake: its tables by name, found by their folders."""

from __future__ import annotations

from pathlib import Path

from lakesplice.errors import TableNotFoundError, UsageError
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.table.layout import LOG

LEVELS = 2


def table_names(root: Path) -> list[TableName]:
    """Return the lake's tables in order of name; none for a lake that doesn't exist yet."""
    folders = (log.parent for log in root.glob(f"*/*/{LOG}") if log.is_dir())
    return sorted(TableName.from_path(folder.relative_to(root).as_posix()) for folder in folders)


def table_store(path: Path) -> LocalStore:
    """Return the store of the table at `path`; `TableNotFoundError` if there is no table."""
    if not (path / LOG).is_dir():
        raise TableNotFoundError(
            "there is no table here; give the path <lake>/<database>/<table>", path=str(path)
        )
    return LocalStore(path)


def lake_of(path: Path) -> tuple[LocalStore, TableName]:
    """Return the lake that the table at `path` belongs to, and the table's name in it."""
    folder = path.expanduser().absolute()
    table_store(folder)
    if len(folder.parts) <= LEVELS:
        raise UsageError("a table lies two folders below its lake", path=str(path))
    root = folder.parents[LEVELS - 1]
    return LocalStore(root), TableName.from_path(folder.relative_to(root).as_posix())
