"""Lakesplice keeps analytical copies of MySQL tables fresh; `Table` reads them.

`splice_file` changes rows of any Parquet file; `append_rows`, `merge_files`, `add_column`,
`drop_column` and `replace_column` write its next version as cheaply. `completeness` returns up to
which moment all tables of a lake are complete. Importing this package is cheap: what does the work
is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakesplice.apps.lake_completeness import Completeness, completeness
    from lakesplice.apps.library.splice_file import SpliceSummary, splice_file
    from lakesplice.apps.library.table import Table
    from lakesplice.apps.library.whole_files import (
        FileSummary,
        add_column,
        append_rows,
        drop_column,
        merge_files,
        replace_column,
    )

__all__ = [
    "Completeness",
    "FileSummary",
    "SpliceSummary",
    "Table",
    "__version__",
    "add_column",
    "append_rows",
    "completeness",
    "drop_column",
    "merge_files",
    "replace_column",
    "splice_file",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Table":
        from lakesplice.apps.library.table import Table  # see above

        return Table
    if name in ("SpliceSummary", "splice_file"):
        from lakesplice.apps.library import splice_file

        return getattr(splice_file, name)
    if name in ("Completeness", "completeness"):
        from lakesplice.apps import lake_completeness

        return getattr(lake_completeness, name)
    if name in __all__:
        from lakesplice.apps.library import whole_files

        return getattr(whole_files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
