"""Lakesplice keeps analytical copies of MySQL tables fresh; `Table` reads them.

`splice_file` changes rows of any Parquet file. Importing this package is cheap: what does the work
is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakesplice.apps.library import Table
    from lakesplice.apps.spliced import SpliceSummary, splice_file

__all__ = ["SpliceSummary", "Table", "__version__", "splice_file"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Table":
        from lakesplice.apps.library import Table  # see above

        return Table
    if name in ("SpliceSummary", "splice_file"):
        from lakesplice.apps import spliced

        return getattr(spliced, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
