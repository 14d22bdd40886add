"""Whatever a source does to its columns' names, each column of the table holds one column's values.

Values say which column they are of: a column's first, second, … life under whatever names. Changes
come from two partitions, one of which lags as it likes.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lakesplice.planning.policy import Behaviour
from lakesplice.storage.local import LocalStore
from lakesplice.testing.shop import Event
from tests.support.altered import FOLLOWING, Life, event, of_delta_reader, told_by
from tests.support.drawing import examples
from tests.support.simulated import memory_folder

POLICY = replace(FOLLOWING, drop_column=Behaviour.EVOLVE)
# Of others the events say a default.
NAMES = ("a", "b", "f")
_PER_COLUMN = 1_000


@dataclass
class Source:
    """A table, what its statements were, and what its rows hold by column."""

    statements: list[tuple[int, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    rows: dict[int, dict[int, int]] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=lambda: {n: at for at, n in enumerate(NAMES)})
    place: int = 0

    def __post_init__(self) -> None:
        columns = ", ".join(f"{name} int" for name in NAMES)
        self.alter(f"CREATE TABLE t (id int primary key, {columns})", self.columns)

    def alter(self, statement: str, columns: dict[str, int]) -> None:
        self.place += 10
        self.statements.append((self.place, statement))
        self.columns = columns

    def write(self, id_: int) -> None:
        self.place += 10
        before = self._image(id_) if id_ in self.rows else None
        values = {of: of * _PER_COLUMN + self.place % _PER_COLUMN for of in self.columns.values()}
        self.rows[id_] = values
        types = {"id": "int32", **dict.fromkeys(self.columns, "int32")}
        self.events.append(event(types, self.place, self._image(id_), before))

    def _image(self, id_: int) -> dict[str, Any]:
        held = self.rows[id_]
        return {"id": id_, **{name: held.get(of) for name, of in self.columns.items()}}

    @property
    def truth(self) -> list[dict[str, Any]]:
        return [self._image(id_) for id_ in sorted(self.rows)]


@st.composite
def sources(draw: st.DrawFn) -> Source:
    """A source that altered its table between rows, or twice in a row."""
    source, fresh, born = Source(), iter("ghijklm"), iter(range(len(NAMES), 99))
    source.write(1)
    for _ in range(draw(st.integers(1, 4))):
        now = dict(source.columns)
        kind = draw(st.sampled_from(("swap", "rename", "chain", "anew", "anew-apart")))
        one, other = draw(st.permutations(sorted(now)))[:2]
        if kind == "swap":
            now[one], now[other] = now[other], now[one]
            ddl = [f"RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}"]
        elif kind == "rename":
            new = next(fresh)
            now[new] = now.pop(one)
            ddl = [f"RENAME COLUMN {one} TO {new}"]
        elif kind == "chain":
            new = next(fresh)
            now[new], now[other] = now[other], now.pop(one)
            ddl = [f"RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {new}"]
        else:
            now[one] = next(born)
            ddl = [f"DROP {one}, ADD {one} int"]
            if kind == "anew-apart":
                ddl = [f"DROP {one}", f"ADD {one} int"]
        for statement in ddl:
            source.alter(f"ALTER TABLE t {statement}", now)
        for id_ in draw(st.lists(st.integers(1, 4), max_size=3)):
            source.write(id_)
    source.write(5)
    return source


@settings(max_examples=examples(25), deadline=None)
@given(
    source=sources(),
    partitions=st.lists(st.integers(0, 1), min_size=20, max_size=20),
    cuts=st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16), st.booleans()), max_size=3),
)
def test_each_column_holds_its_own_values_under_its_present_name(
    source: Source, partitions: list[int], cuts: list[tuple[int, int, bool]]
) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        life = Life(LocalStore(folder), told_by(*source.statements), POLICY)
        for found, partition in zip(source.events, partitions, strict=False):
            life.topic.append(partition, [found])
        for first, second, compacts in cuts:
            at, ends = life.driver.table.next_offsets({0, 1}), life.topic.ends
            to = {n: min(max(end, at[n]), ends[n]) for n, end in ((0, first), (1, second))}
            life.driver.batch(to)
            if compacts:
                life.driver.compact()
        life.driver.batch()
        # A column that came and went while its partition lagged is nowhere in the table.
        assume("a change that comes late" not in life.parked)
        assert life.parked == ""
        held = [{name: row[name] for name in ("id", *source.columns)} for row in life.rows()]
        assert held == source.truth
        life.driver.compact()
        shown = of_delta_reader(Path(folder) / "s" / "t")
        assert [{name: row[name] for name in ("id", *source.columns)} for row in shown] == held
