"""Which columns of a table a view shows, and under which names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lakesplice.model.names import unescape
from lakesplice.model.schema import TableSchema
from lakesplice.planning.schema.type_changes import is_wall_clock


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view. `wall_clock`: its moments are DATETIMEs, which have no time zone."""

    name: str
    stored_name: str
    type: str
    wall_clock: bool


def view_columns(schema: TableSchema, *, odd_names: bool) -> tuple[ViewColumn, ...]:
    """Return the user's columns in their order, without hidden ones.

    With `odd_names` each has the source's name. Engines compare names without regard to case, so
    names that would collide stay the stored ones.
    """
    shown = [column for column in schema.columns if not column.hidden]
    stored = [column.name for column in shown]
    names = _distinct(stored) if odd_names else stored
    return tuple(
        ViewColumn(name, column.name, column.type.name, is_wall_clock(column))
        for name, column in zip(names, shown, strict=True)
    )


def _distinct(stored: Sequence[str]) -> Sequence[str]:
    names = [unescape(name) for name in stored]
    while True:
        counts = Counter(name.casefold() for name in names)
        kept = [
            name if counts[name.casefold()] == 1 else of
            for name, of in zip(names, stored, strict=True)
        ]
        if kept == names:
            return names
        names = kept
