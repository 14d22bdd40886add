"""Clauses of merges, in SQL and in Python, and their result for a dict of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakesplice.table.by_hand.edits.merge_builder import MergeBuilder
from tests.support.by_hand import Row

# Of the table's row and the source's; the one that a clause hasn't got is empty.
OfBoth = Callable[[Row, Row], Any]


@dataclass(frozen=True)
class MergeClause:
    """A clause by the name of its method."""

    method: str
    where: str | None = None
    holds: OfBoth = field(default=lambda _, __: True, repr=False)
    values: Mapping[str, object] | None = None
    new: OfBoth = field(default=lambda _, source: source, repr=False)

    def added_to(self, merge: MergeBuilder) -> MergeBuilder:
        arguments = {} if self.values is None else {"values": dict(self.values)}
        if "update" in self.method and self.values is not None:
            arguments = {"set": arguments["values"]}
        built: MergeBuilder = getattr(merge, self.method)(where=self.where, **arguments)
        return built

    def has(self, target: Row | None, source: Row | None) -> bool:
        kind = {(True, True): "when_matched_", (False, True): "when_not_matched_insert"}.get(
            (target is not None, source is not None), "when_not_matched_by_source_"
        )
        return self.method.startswith(kind) and bool(self.holds(target or {}, source or {}))


CLAUSES = [
    MergeClause("when_matched_update"),
    MergeClause(
        "when_matched_update",
        "source.n > target.n OR target.name IS NULL",
        lambda t, s: t["name"] is None or (None not in (t["n"], s["n"]) and s["n"] > t["n"]),
        {"name": "source.name", "price": "target.price"},
        lambda t, s: {"name": s["name"]},
    ),
    MergeClause("when_matched_delete"),
    MergeClause("when_matched_delete", "source.name = ''", lambda t, s: s["name"] == ""),
    MergeClause("when_not_matched_insert"),
    MergeClause(
        "when_not_matched_insert",
        "id < 3",
        lambda t, s: s["id"] < 3,
        {"n": "id", "name": "coalesce(source.name, 'new')"},
        lambda t, s: {"n": s["id"], "name": "new" if s["name"] is None else s["name"]},
    ),
    MergeClause("when_not_matched_by_source_delete"),
    MergeClause("when_not_matched_by_source_delete", "n IS NULL", lambda t, s: t["n"] is None),
    MergeClause(
        "when_not_matched_by_source_update",
        "id >= 2",
        lambda t, s: t["id"] >= 2,
        {"n": None, "name": "target.name || '!'"},
        lambda t, s: {"n": None, "name": None if t["name"] is None else t["name"] + "!"},
    ),
]


def merged(
    rows: Mapping[int, Row], source: Sequence[Row], clauses: Sequence[MergeClause]
) -> tuple[dict[int, Row], tuple[int, int, int]]:
    """The rows after a merge, and how many it inserted, updated and deleted."""
    empty: Row = dict.fromkeys(["id", "name", "n", "price"])
    after, counts = dict(rows), [0, 0, 0]
    given = {row["id"]: row for row in source}
    for key in {*rows, *given}:
        target, other = rows.get(key), given.get(key)
        clause = next((one for one in clauses if one.has(target, other)), None)
        if clause is None:
            continue
        if clause.method.endswith("delete"):
            del after[key]
            counts[2] += 1
        else:
            after[key] = {**(target or empty), **clause.new(target or {}, other or {}), "id": key}
            counts[target is not None] += 1
    return after, (counts[0], counts[1], counts[2])
