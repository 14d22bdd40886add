"""A caller may give one name where a list of names is expected. A text is iterable, too, so without
care its letters would be the names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakesplice
from lakesplice import Table
from lakesplice.errors import TableNotFoundError

# Each letter of "id" is a column, too.
ROWS = pa.table({"id": ["a"], "i": ["b"], "d": ["c"]})


def public_callables() -> list[tuple[str, Callable[..., Any]]]:
    of_table = inspect.getmembers(Table, inspect.isroutine)
    of_package = ((name, getattr(lakesplice, name)) for name in lakesplice.__all__)
    named = [*of_table, *((name, one) for name, one in of_package if inspect.isroutine(one))]
    return [(name, one) for name, one in named if not name.startswith("_")]


@pytest.mark.parametrize(("name", "callable_"), public_callables())
def test_no_public_call_takes_names_only_as_a_list(
    name: str, callable_: Callable[..., Any]
) -> None:
    of = inspect.signature(callable_).parameters.values()
    lists = [one.name for one in of if str(one.annotation).startswith("Sequence[str]")]
    assert not lists, f"{name} has parameters that would take a text for a list of letters"


def test_a_single_key_column_needs_no_list(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "by-name", ROWS, key="id", stats_columns="i")
    table.upsert(pa.table({"id": ["a"], "d": ["new"]}))
    assert table.changes(1, columns="d").read_all().column("d").to_pylist() == ["new"]


def test_a_single_column_is_read_by_its_name(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", ROWS, key=["id"])
    assert table.read(columns="id").to_pydict() == {"id": ["a"]}
    assert table.scan(columns="id").read_all().column_names == ["id"]


def test_a_single_pattern_chooses_the_tables_of_a_lake(tmp_path: Path) -> None:
    Table.create(tmp_path / "shop" / "a", ROWS, key="id")
    with pytest.raises(TableNotFoundError) as raised:
        lakesplice.completeness(tmp_path, "shop.[!a]*")
    assert raised.value.facts["patterns"] == ["shop.[!a]*"]
