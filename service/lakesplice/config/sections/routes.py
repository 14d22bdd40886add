"""Which table of the lake a table of the source becomes."""

from __future__ import annotations

import re

from lakesplice.model.names import TableName


def is_regex(match: str) -> bool:
    """Whether a regular expression, not a glob, says which tables are meant."""
    return len(match) > 1 and match.startswith("/") and match.endswith("/")


def check_route(match: str, to: str) -> None:
    """Raise `ValueError` for a route that names no `database.table` or groups that aren't there."""
    parts = to.split(".")
    if len(parts) != 2 or not all(parts):
        raise ValueError("to must be database.table")
    expression = match[1:-1] if is_regex(match) else ""
    try:
        # A group is found, if only as an empty one, exactly where the expression has it.
        matched = re.fullmatch(f"(?:{expression})|", "")
        assert matched is not None, "the second alternative matches"
        matched.expand(to)
    except (re.error, IndexError) as error:
        raise ValueError(f"to has a group that match hasn't: {error}") from None


def route(match: str, to: str, name: TableName) -> TableName:
    """Return the table that `name`, which `match` matches, becomes."""
    matched = re.fullmatch(match[1:-1], str(name)) if is_regex(match) else None
    database, _, table = (to if matched is None else matched.expand(to)).partition(".")
    return TableName(database, table)
