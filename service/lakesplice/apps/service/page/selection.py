"""Selects and sorts the shown tables as a query requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from lakesplice.apps.service.page.answers import TableAnswer
from lakesplice.errors import UsageError
from lakesplice.model.driver_status import TROUBLES, WORST_FIRST, TopicState

ATTENTION = "attention"
ASCENDING, DESCENDING = "asc", "desc"


def _attention(row: TableAnswer) -> tuple[int, bool, float]:
    """A sort key: the row that most needs attention has the smallest key. The worst state comes
    first, then the oldest view.
    """
    excluded = row.state is TopicState.EXCLUDED
    trouble = WORST_FIRST.index(row.state) if row.state in TROUBLES else len(TROUBLES) + excluded
    return trouble, row.compaction != "failing", -(row.real_time_seconds or 0.0)


_KEYS: Mapping[str, Callable[[TableAnswer], Any]] = {
    ATTENTION: _attention,
    "table": lambda row: (row.table is None, row.table or row.topic),
    "state": lambda row: WORST_FIRST.index(row.state),
    "real_time": lambda row: row.real_time_seconds,
    "read_optimised": lambda row: row.read_optimised_seconds,
    "lateness": lambda row: row.lateness,
    "lag": lambda row: row.lag_records,
    "changes": lambda row: row.changes_per_second,
    "waiting": lambda row: None if row.waiting is None else row.waiting.changes,
    "dead_letters": lambda row: row.dead_letters,
    "rows": lambda row: row.rows,
}
SORTS = tuple(_KEYS)
# By these columns the smallest value comes first unless the query says otherwise.
_LEAST_FIRST = (ATTENTION, "table", "state")


@dataclass(frozen=True)
class Selection:
    """A request for rows that contain `search` and are in `state`, sorted."""

    search: str = ""
    state: str = ""
    sort: str = ATTENTION
    order: str = ASCENDING

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Selection:
        """Read a query's parameters; `UsageError` for a value that doesn't exist."""
        sort = query.get("sort") or ATTENTION
        order = query.get("order") or (ASCENDING if sort in _LEAST_FIRST else DESCENDING)
        state = query.get("state", "")
        _require("sort", sort, SORTS)
        _require("order", order, (ASCENDING, DESCENDING))
        _require("state", state, ("", *TopicState))
        return cls(query.get("search", "").strip(), state, sort, order)

    def of(self, rows: Iterable[TableAnswer]) -> list[TableAnswer]:
        """Return the selected rows in order; those without a value to sort by come last."""
        wanted = self.search.casefold()
        found = [
            row
            for row in rows
            if wanted in _text(row) and (not self.state or row.state == self.state)
        ]
        key = _KEYS[self.sort]
        known = [row for row in found if key(row) is not None]
        unknown = [row for row in found if key(row) is None]
        known.sort(key=key, reverse=self.order == DESCENDING)
        return known + unknown

    def sorted_by(self, sort: str) -> Selection:
        """Return the selection sorted by another column, or in the reverse order if it is sorted by
        this one.
        """
        least_first = sort in _LEAST_FIRST
        if sort == self.sort:
            least_first = self.order == DESCENDING
        return replace(self, sort=sort, order=ASCENDING if least_first else DESCENDING)

    @property
    def query(self) -> str:
        """The query parameters of this selection."""
        given = {"search": self.search, "state": self.state}
        asked = {"sort": self.sort, "order": self.order}
        return urlencode({name: value for name, value in (given | asked).items() if value})


def _require(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        known = ", ".join(repr(str(one)) for one in allowed if one)
        raise UsageError(f"{name} has no such value; give one of {known}", given=value)


def _text(row: TableAnswer) -> str:
    texts = (row.table, row.topic, row.state.value, row.code, row.reason, row.compaction)
    return "\n".join(text for text in texts if text).casefold()
