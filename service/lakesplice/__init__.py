"""Lakesplice keeps analytical copies of MySQL tables fresh; `Table` reads them.

Importing this package is cheap: what reads tables is imported when `Table` is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakesplice.apps.library import Table

__all__ = ["Table", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Table":
        from lakesplice.apps.library import Table  # see above

        return Table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
