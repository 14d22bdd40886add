"""What Python programs import: `lakesplice.Table`, wired to the storage that its address names."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from lakesplice.errors import UnsupportedError
from lakesplice.storage.local import LocalStore
from lakesplice.table import facade


class Table(facade.Table):
    """A table of a lake; open it by its folder."""

    @classmethod
    def open(cls, uri: str | Path, *, version: int | None = None) -> Self:
        """Open a table by its folder, `<lake>/<database>/<table>`, as a path or a `file:` address.

        The newest version is opened, or a given one. Blocks on reading the log and the manifest.
        Raises `TableNotFoundError`, `VersionNotFoundError`, `UnsupportedError` for other storage.
        """
        return cls(LocalStore(_local_path(uri)), version)


def _local_path(uri: str | Path) -> Path:
    if isinstance(uri, Path) or "://" not in uri:
        return Path(uri)
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise UnsupportedError("only tables on a local disk can be opened; give a path", uri=uri)
    return Path(unquote(parts.path))
