"""Whatever a source does to its columns' names, each column of the table has one source column's
values.

Each value shows which column it belongs to, under whatever name. Changes come from two partitions,
one of which may lag by any amount.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lakesplice.config.sections.schema_changes import SchemaChangeSettings, policy_of
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.testing.shop import Event
from tests.support.altered import FOLLOWING, Life, event, of_delta_reader, told_by
from tests.support.drawing import examples
from tests.support.simulated import memory_folder

POLICY = replace(FOLLOWING, drop_column=Behaviour.EVOLVE)
BY_DEFAULT = policy_of(SchemaChangeSettings(), None)
# The same, but a column whose type can't be followed continues beside the former one.
BESIDE = replace(BY_DEFAULT, alter_column_type=Behaviour.TRY_EVOLVE)
# Of others the events say a default.
NAMES = ("a", "b", "f")
_PER_COLUMN = 1_000
_DDL = {"int32": "int", "int64": "bigint", "float": "float"}


@dataclass
class Source:
    """A table, what its statements were, and what its rows hold by column."""

    statements: list[tuple[int, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    rows: dict[int, dict[int, int]] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=lambda: {n: at for at, n in enumerate(NAMES)})
    place: int = 0
    kinds: dict[int, str] = field(default_factory=dict)
    # Columns with another type beside those that had their names.
    beside: set[int] = field(default_factory=set)
    # Per column the names that it ever had; those of which rows were sent under each.
    names: dict[int, list[str]] = field(default_factory=dict)
    shown: set[tuple[int, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        columns = ", ".join(f"{name} int" for name in NAMES)
        self.alter(f"CREATE TABLE t (id int primary key, {columns})", self.columns)

    def alter(self, statement: str, columns: dict[str, int]) -> None:
        self.place += 10
        self.statements.append((self.place, statement))
        self.columns = columns
        for name, of in columns.items():
            if name not in self.names.setdefault(of, []):
                self.names[of].append(name)

    def write(self, id_: int) -> None:
        self.place += 10
        before = self._image(id_) if id_ in self.rows else None
        values = {of: of * _PER_COLUMN + self.place % _PER_COLUMN for of in self.columns.values()}
        self.rows[id_] = values
        self.shown |= {(of, name) for name, of in self.columns.items()}
        kinds = {name: self.kinds.get(of, "int32") for name, of in self.columns.items()}
        types = {"id": "int32", **kinds}
        self.events.append(event(types, self.place, self._image(id_), before))

    def _image(self, id_: int) -> dict[str, Any]:
        held = self.rows[id_]
        return {"id": id_, **{name: held.get(of) for name, of in self.columns.items()}}

    def names_of(self, column: int) -> list[str]:
        """The names under which rows of a column were sent, if no other column ever had any."""
        own = [name for name in self.names[column] if (column, name) in self.shown]
        others = {n for of, names in self.names.items() if of != column for n in names}
        return [] if others & set(self.names[column]) else own

    def kept(self, id_: int) -> list[int]:
        """What a row holds in columns that the source dropped since the row last changed."""
        shown = {of for of, _ in self.shown} - set(self.columns.values())
        return [value for of, value in self.rows[id_].items() if of in shown]

    @property
    def truth(self) -> list[dict[str, Any]]:
        return [self._image(id_) for id_ in sorted(self.rows)]


NAMING = ("swap", "rename", "chain", "anew", "anew-apart")


@st.composite
def sources(draw: st.DrawFn, kinds: tuple[str, ...] = NAMING) -> Source:
    """A source that altered its table between rows, or twice in a row."""
    source, fresh, born = Source(), iter("ghijklmnopqrstuvwxyz"), iter(range(len(NAMES), 99))
    source.write(1)
    for _ in range(draw(st.integers(1, 4))):
        now = dict(source.columns)
        kind = draw(st.sampled_from(kinds if len(now) > 2 else ("add",)))
        one, other = draw(st.permutations(sorted(now)))[:2]
        if kind in NAMING:
            statements = renamed(kind, now, (one, other, next(fresh)), next(born))
        else:
            former = sorted({n for names in source.names.values() for n in names} - now.keys())
            new = draw(st.sampled_from([next(fresh), *former]))
            statements = altered(kind, now, source, (one, new), next(born))
        for statement in statements:
            source.alter(f"ALTER TABLE t {statement}", now)
        for id_ in draw(st.lists(st.integers(1, 4), max_size=3)):
            source.write(id_)
    source.write(5)
    return source


def renamed(kind: str, now: dict[str, int], names: tuple[str, str, str], born: int) -> list[str]:
    """Let names be other columns' and return the statements."""
    one, other, new = names
    if kind == "swap":
        now[one], now[other] = now[other], now[one]
        return [f"RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}"]
    if kind == "rename":
        now[new] = now.pop(one)
        return [f"RENAME COLUMN {one} TO {new}"]
    if kind == "chain":
        now[new], now[other] = now[other], now.pop(one)
        return [f"RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {new}"]
    now[one] = born
    return (
        [f"DROP {one}", f"ADD {one} int"]
        if kind == "anew-apart"
        else [f"DROP {one}, ADD {one} int"]
    )


def altered(
    kind: str, now: dict[str, int], source: Source, names: tuple[str, str], born: int
) -> list[str]:
    """Alter columns, maybe with a name that one had before, and return the statements."""
    one, new = names
    if kind == "change":
        now[new] = now.pop(one)
        return [f"CHANGE {one} {new} {_DDL[source.kinds.get(now[new], 'int32')]}"]
    if kind == "drop":
        del now[one]
        return [f"DROP {one}"]
    if kind == "widen":
        # A whole number and a float can't hold each other's values: those are another column's.
        if source.kinds.get(now[one]) == "float":
            now[one] = born
            source.beside.add(born)
        source.kinds[now[one]] = "int64"
        return [f"MODIFY {one} bigint"]
    if kind == "retype":
        if source.kinds.get(now[one]) != "float":
            now[one] = born
            source.beside.add(born)
        source.kinds[now[one]] = "float"
        return [f"MODIFY {one} float"]
    now[new] = born
    for held in source.rows.values():
        held[born] = 5
    return [f"ADD {new} int NOT NULL DEFAULT 5"]


def dropped_and_added() -> Source:
    """A row is sent while a name is no column's, before another column gets it."""
    source = Source()
    source.write(1)
    source.alter("ALTER TABLE t DROP f", {"a": 0, "b": 1})
    source.write(2)
    for held in source.rows.values():
        held[len(NAMES)] = 5
    source.alter("ALTER TABLE t ADD f int NOT NULL DEFAULT 5", {"a": 0, "b": 1, "f": len(NAMES)})
    source.write(3)
    source.write(5)
    return source


def swapped_and_back() -> Source:
    """Rows from before a swap and from after the swap back, which look alike, are read at once."""
    source = Source()
    source.write(1)
    source.write(2)
    swap = "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"
    source.alter(swap, {"a": 1, "b": 0, "f": 2})
    source.write(1)
    source.alter(swap, {"a": 0, "b": 1, "f": 2})
    source.write(5)
    return source


@example(source=swapped_and_back(), policy=POLICY, partitions=[0] * 4, cuts=[(1, 0, False)])
@example(
    source=dropped_and_added(),
    policy=POLICY,
    partitions=[0, 1, 0, 0],
    cuts=[(2, 0, False), (2, 1, True)],
)
@settings(max_examples=examples(25), deadline=None)
@given(
    source=sources(),
    policy=st.sampled_from((POLICY, BY_DEFAULT)),
    partitions=st.lists(st.integers(0, 1), min_size=20, max_size=20),
    cuts=st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16), st.booleans()), max_size=3),
)
def test_each_column_holds_its_own_values_under_its_present_name(
    source: Source,
    policy: SchemaPolicy,
    partitions: list[int],
    cuts: list[tuple[int, int, bool]],
) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        life = Life(LocalStore(folder), told_by(*source.statements), policy)
        for found, partition in zip(source.events, partitions, strict=False):
            life.topic.append(partition, [found])
        take(life, cuts)
        # A column that came and went while its partition lagged is nowhere in the table.
        assume("a late change has" not in life.parked)
        assert life.parked == ""
        held = [{name: row[name] for name in ("id", *source.columns)} for row in life.rows()]
        assert held == source.truth
        life.driver.compact()
        shown = of_delta_reader(Path(folder) / "s" / "t")
        assert [{name: row[name] for name in ("id", *source.columns)} for row in shown] == held


def former_name_again() -> Source:
    """A column gets its former name back after rows were sent under another."""
    source = Source()
    source.write(1)
    for one, new, id_ in (("a", "h", 2), ("h", "a", 5)):
        now = dict(source.columns)
        now[new] = now.pop(one)
        source.alter(f"ALTER TABLE t CHANGE {one} {new} int", now)
        source.write(id_)
    return source


def former_name_by_a_swap() -> Source:
    """A column gets its former name back from one that had it in between."""
    source = Source()
    source.write(1)
    now = dict(source.columns)
    now["g"] = now.pop("b")
    source.alter("ALTER TABLE t CHANGE b g int", now)
    source.write(1)
    now = now | {"b": len(NAMES)}
    source.rows[1][len(NAMES)] = 5
    source.alter("ALTER TABLE t ADD b int NOT NULL DEFAULT 5", now)
    source.write(1)
    now = now | {"b": now["g"], "g": now["b"]}
    source.alter("ALTER TABLE t RENAME COLUMN b TO g, RENAME COLUMN g TO b", now)
    source.write(5)
    return source


def former_name_reused(then: str) -> Source:
    """A column was renamed and another one has its former name; then it goes or gets another
    type.
    """
    source = Source()
    source.write(1)
    source.write(2)
    now = {"g": 0, "b": 1, "f": 2}
    source.alter("ALTER TABLE t RENAME COLUMN a TO g", now)
    source.write(2)
    now = now | {"a": 3}
    source.alter("ALTER TABLE t ADD a int", now)
    source.write(2)
    if then == "DROP":
        source.alter("ALTER TABLE t DROP g", {n: of for n, of in now.items() if n != "g"})
    else:
        source.kinds[4] = "float"
        source.beside.add(4)
        source.alter("ALTER TABLE t MODIFY g float", now | {"g": 4})
    source.write(2)
    source.write(5)
    return source


def added_and_renamed() -> Source:
    """A column is added with a value in all rows, and renamed, before it is read."""
    source = Source()
    source.write(1)
    now = {**source.columns, "g": len(NAMES)}
    source.rows[1][len(NAMES)] = 5
    source.alter("ALTER TABLE t ADD g int NOT NULL DEFAULT 5", now)
    source.write(2)
    now = {**source.columns, "j": now["g"]}
    del now["g"]
    source.alter("ALTER TABLE t CHANGE g j int", now)
    source.write(5)
    return source


@pytest.mark.slow
@example(source=added_and_renamed(), cuts=[(1, 0, False)])
@example(source=former_name_again(), cuts=[])
@example(source=former_name_by_a_swap(), cuts=[])
@example(source=former_name_reused("DROP"), cuts=[])
@example(source=former_name_reused("MODIFY"), cuts=[])
@settings(max_examples=examples(20), deadline=None)
@given(
    source=sources((*NAMING, "change", "change", "drop", "widen", "retype", "add", "add")),
    cuts=st.lists(st.tuples(st.integers(0, 16), st.just(0), st.booleans()), max_size=3),
)
def test_by_default_no_value_is_lost_and_each_is_under_its_name_in_any_batching(
    source: Source, cuts: list[tuple[int, int, bool]]
) -> None:
    ends = []
    for own in ([], cuts):
        with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
            life = Life(LocalStore(folder), told_by(*source.statements), BESIDE)
            life.topic.append(0, source.events)
            take(life, own)
            assert life.parked == ""
            life.driver.compact()
            ends.append(life.rows())
            assert of_delta_reader(Path(folder) / "s" / "t") == ends[-1]
            stored = {n: column.name for n, column in life.driver.table.schema.by_source.items()}
    assert ends[0] == ends[1]
    under = {n: stored[n] if of in source.beside else n for n, of in source.columns.items()}
    assert [{"id": row["id"], **{n: row[at] for n, at in under.items()}} for row in ends[0]] == (
        source.truth
    )
    for row in ends[0]:
        for name, column in source.columns.items():
            assert {row[other] for other in source.names_of(column)} <= {row[under[name]]}
        for value in source.kept(row["id"]):
            names = {name for name, of in row.items() if of == value}
            # Two only if the source had both for the column.
            assert len(names) == 1 or (names and names <= set(source.names[value // _PER_COLUMN]))


def take(life: Life, cuts: list[tuple[int, int, bool]]) -> None:
    """Take all in batches that end where the cuts say, some of them compacted."""
    for first, second, compacts in cuts:
        life.batch_unless_parked(dict(life.driver.ends_near(first, second)))
        if compacts:
            life.driver.compact()
    life.batch_unless_parked()
