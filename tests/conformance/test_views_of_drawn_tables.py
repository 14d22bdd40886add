"""The SQL of `lakesplice views` for tables with any names, types and shapes, run in DuckDB and in
Trino: a view has the rows of the source, each column under its name.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lakesplice.apps.table_commands.engine_views import engine_views
from lakesplice.model.names import column_name
from lakesplice.planning.engine_views.engines import Engine
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.masks import masks_of
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.conformance.test_types import in_json
from tests.conformance.test_views_elsewhere import by_duckdb
from tests.support.debezium import compact, envelope_schema, key_schema, payload, with_schema
from tests.support.drawing import examples
from tests.support.sent_types import DEAD, PARKED
from tests.support.simulated import memory_folder
from tests.support.trino import LocalTrino, address, in_milliseconds
from tests.support.types import TYPES

NAMES = (
    "select", "a b", 'q"uote', "ba`ck", "d.o.t", "Ünï", "漢字", "😀", "_is_deleted", "_row_digest",
    "a", "a_2", "_x41_", "base", "null", "'sq'", "semi;colon", "--c", "/* x", "new\nline", "{b}",
    "%s", "$1", "?", "back\\slash", "ß", "SS", "ﬁ", "fi", "İ", "ı", "i", "ς", "σ", "ſ", "s", "1",
    "_", "rowid", "filename", "count(*)", "a,b", "*", "`", '"', "\u200b", "é" * 64, "_metadata",
)  # fmt: skip
# Engines that compare names without regard to case take some of these for one.
ALIKE = ("ß", "SS", "ﬁ", "fi", "ς", "Σ", "ſ", "S")
TABLES = ("orders", "select", "a b", 'q"t', "Ünï", "_t", "x'y", "t__base", "%20", "a=b", "#h")
_ID = {"type": "int64", "optional": False, "field": "id"}
# Per type its field in the connector's events, and values as they are sent and as they are.
FIELDS: list[tuple[Mapping[str, Any], list[tuple[Any, Any]]]] = [
    (sent.type, [(in_json(sent.value), sent.outcome), (None, None)])
    for kind in TYPES
    for sent in kind.connect
    if sent.outcome not in (DEAD, PARKED) and isinstance(sent.type, Mapping)
]


@dataclass(frozen=True)
class Drawn:
    """A table: per column its type, how it is shaped, and its rows in their order, None for a row
    that goes.
    """

    table: str
    types: dict[str, tuple[Mapping[str, Any], list[tuple[Any, Any]]]]
    left_out: str
    masked: str
    computed: str
    changes: list[tuple[int, Sequence[int] | None]]


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    """A table with names that a source can tell apart."""
    any_name = st.sampled_from(NAMES) | st.sampled_from(ALIKE)
    names = draw(st.lists(any_name, unique_by=str.lower, min_size=4, max_size=7))
    columns, others = names[1:], draw(st.permutations(names[1:]))
    values = st.tuples(*[st.integers(0, 1)] * len(columns))
    changes = st.tuples(st.integers(-1, 3), st.none() | values | values)
    return Drawn(
        draw(st.sampled_from(TABLES)),
        {name: draw(st.sampled_from(FIELDS)) for name in columns},
        others[0],
        others[1],
        names[0],
        draw(st.lists(changes, min_size=1, max_size=8)),
    )


def literally(name: str) -> str:
    """The name as a pattern."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def shape_of(drawn: Drawn) -> Shape:
    assert fnmatchcase(drawn.masked, literally(drawn.masked))
    return Shape(
        exclude=(literally(drawn.left_out),),
        masks=masks_of({literally(drawn.masked): "redact"}),
        computed=((drawn.computed, parse("concat(cast(id, string), '''')")),),
    )


def shown(drawn: Drawn, key: int, choice: Sequence[int]) -> dict[str, Any]:
    """A row as the table shows it."""
    row: dict[str, Any] = {"id": key}
    for (name, (_, values)), at in zip(drawn.types.items(), choice, strict=True):
        value = values[at][1]
        if name == drawn.masked:
            value = "***" if isinstance(value, str) else None
        if name != drawn.left_out:
            row[name] = value
    row[drawn.computed] = f"{key}'"
    alike = Counter(name.casefold() for name in row)
    return {n if alike[n.casefold()] == 1 else column_name(n): v for n, v in row.items()}


def filled(drawn: Drawn, lake: LocalStore) -> tuple[SimulatedDriver, dict[int, dict[str, Any]]]:
    """Send the changes, and return what the table should show."""
    topic = SimulatedTopic(f"t.shop.{drawn.table}")
    driver = SimulatedDriver(lake, topic, FixedClock(), SeededEntropy(1), shape=shape_of(drawn))
    fields = [{**field, "field": n, "optional": True} for n, (field, _) in drawn.types.items()]
    held: dict[int, dict[str, Any]] = {}
    truth: dict[int, dict[str, Any]] = {}
    for at, (key, choice) in enumerate(drawn.changes, 1):
        before, after = held.pop(key, None), None
        truth.pop(key, None)
        if choice is not None:
            columns = zip(drawn.types.items(), choice, strict=True)
            after = {"id": key, **{n: values[of][0] for (n, (_, values)), of in columns}}
            held[key], truth[key] = after, shown(drawn, key, choice)
        if before is after:
            continue
        op = "d" if after is None else "c" if before is None else "u"
        place = {"db": "shop", "table": drawn.table}
        content = payload(op, before, after, pos=at, **place)
        event = with_schema(content, envelope_schema([_ID, *fields]))
        identity = with_schema({"id": key}, key_schema([_ID]))
        topic.append(0, [Event(topic.name, compact(identity), compact(event), (), 1000)])
        if at % 3 == 0:
            assert driver.batch() is CommitOutcome.DONE
    driver.batch()
    return driver, truth


@settings(max_examples=examples(36), deadline=None)
@given(tables())
def test_a_view_of_any_table_has_the_sources_rows_under_the_sources_names(drawn: Drawn) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        driver, truth = filled(drawn, LocalStore(folder))
        if driver.table.snapshot is None or not driver.table.schema.columns:
            return
        assert driver.table.parked is None
        driver.compact()
        database, table = (part.replace('"', '""') for part in driver.name.path.split("/"))
        found: pa.Table = by_duckdb(Path(folder) / driver.name.path, f'"{database}"."{table}"')
        assert {row["id"]: row for row in found.to_pylist()} == truth
        assert found.num_rows == len(truth)
        if truth:
            assert found.column_names == list(truth[next(iter(truth))])


@pytest.mark.nightly
@settings(
    max_examples=examples(36), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
@given(drawn=tables())
def test_a_view_of_any_table_has_the_same_rows_in_trino(trino: LocalTrino, drawn: Drawn) -> None:
    """Under the same names as in DuckDB, with moments as Trino has them."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        driver, _ = filled(drawn, LocalStore(folder))
        if driver.table.snapshot is None or not driver.table.schema.columns:
            return
        driver.compact()
        path = Path(folder) / driver.name.path
        (view,) = engine_views(str(path), Engine.TRINO, address(Path(folder)))
        database, table = driver.name.path.split("/")
        name = f'"{database}"."{table}"'
        try:
            for statement in view.statements:
                trino.run(statement)
            theirs = trino.run(f"select * from {name}")
        finally:  # the next table may have the same name
            trino.run(f"drop view if exists {name}")
            trino.run(f"call system.unregister_table('{database}', '{table}__base')")
        known = in_milliseconds(by_duckdb(path, name))
        assert theirs.column_names == known.column_names
        assert theirs.sort_by("id").to_pylist() == known.sort_by("id").to_pylist()
