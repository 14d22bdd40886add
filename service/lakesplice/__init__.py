"""Lakesplice keeps analytical copies of MySQL tables fresh; `Table` reads them.

`splice_file` changes rows of any Parquet file; `append_rows`, `merge_files`, `add_column`,
`drop_column` and `replace_column` write its next version as cheaply. Importing this package is
cheap: what does the work is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakesplice.apps.files import (
        FileSummary,
        add_column,
        append_rows,
        drop_column,
        merge_files,
        replace_column,
    )
    from lakesplice.apps.library import Table
    from lakesplice.apps.spliced import SpliceSummary, splice_file

__all__ = [
    "FileSummary",
    "SpliceSummary",
    "Table",
    "__version__",
    "add_column",
    "append_rows",
    "drop_column",
    "merge_files",
    "replace_column",
    "splice_file",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Table":
        from lakesplice.apps.library import Table  # see above

        return Table
    if name in ("SpliceSummary", "splice_file"):
        from lakesplice.apps import spliced

        return getattr(spliced, name)
    if name in __all__:
        from lakesplice.apps import files

        return getattr(files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
