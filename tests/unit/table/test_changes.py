"""What each version changed: applied one after the other, the changes give every version's rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.apps.library.table import Table
from lakesplice.errors import UnsupportedError, UsageError, VersionNotFoundError
from lakesplice.model.names import CHANGE_TYPE, COMMIT_TIME, COMMIT_VERSION
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading import table as facade
from tests.support.scenario import Scenario

State = dict[Any, dict[str, Any]]


def follow(table: facade.Table, key: str) -> list[str]:
    """Lay each version's changes over those before, and compare with the version itself."""
    state: State = {}
    kinds: list[str] = []
    for version in range(table.version + 1):
        for row in table.changes(version, version).read_all().to_pylist():
            kind, number = row.pop(CHANGE_TYPE), row.pop(COMMIT_VERSION)
            assert number == version
            assert row.pop(COMMIT_TIME) is not None
            kinds.append(kind)
            if kind == "delete":
                state.pop(row[key], None)
            else:
                state[row[key]] = row
        expected = {row[key]: row for row in table.read(version=version).to_pylist()}
        assert {at: {n: row.get(n) for n in expected[at]} for at, row in state.items()} == expected
    return kinds


@pytest.mark.slow
def test_changes_from_a_topic_lead_from_version_to_version(tmp_path: Path) -> None:
    scenario, lake = Scenario(), LocalStore(tmp_path)
    driver = scenario.driver(lake)
    for number, cut in enumerate(scenario.cuts):
        driver.batch(cut)
        if number % 2:
            driver.compact()
            driver.merge_runs(2)
    table = facade.Table(lake.within(driver.name.path))
    kinds = follow(table, "id")
    assert {"insert", "update_postimage", "delete"} == set(kinds)


@pytest.mark.slow
def test_changes_by_hand_lead_from_version_to_version(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "a": range(100), "b": ["x"] * 100})
    table = Table.create(tmp_path / "lake" / "s" / "t", rows, key=["id"])
    table.upsert(pa.table({"id": [3, 50], "a": [-1, None]}))
    table.upsert(pa.table({"id": [3, 200], "a": [7, 8], "b": ["y", "z"]}))
    table.compact()
    table.upsert(pa.table({"id": [3], "b": ["w"]}), delete=pa.table({"id": [50, 51]}))
    table.upsert(pa.table({"id": [50], "a": [1], "b": ["back"]}))
    kinds = follow(table.refresh(), "id")
    assert kinds.count("delete") == 2
    assert kinds.count("insert") == 102


@pytest.mark.slow
def test_changes_merged_at_once_are_those_that_would_wait_in_deltas(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "a": range(100), "b": ["x"] * 100})
    found = []
    for merge in (False, True):
        table = Table.create(tmp_path / f"{merge}" / "s" / "t", rows, key=["id"])
        table.upsert(pa.table({"id": [3, 50, 4], "a": [-1, None, 5]}), merge=False)
        both = pa.table({"id": [3, 200, 7], "a": [7, 8, 9], "b": ["y", "z", "y"]})
        table.upsert(both, delete=pa.table({"id": [50, 60]}), merge=merge)
        back = pa.table({"id": [60, 8], "a": [6, 1], "b": ["back", "b"]})
        table.upsert(back, merge=merge)
        assert bool(table.snapshot.manifest.deltas) is not merge
        kinds = follow(table, "id")
        assert (kinds.count("delete"), kinds.count("insert")) == (2, 102)
        found.append(told(table))
    assert found[0] == found[1]


def told(table: facade.Table) -> list[tuple[Any, ...]]:
    """All changes in order; of a deleted row only the key means something."""
    rows = table.changes(0).read_all().drop_columns([COMMIT_TIME]).to_pylist()
    keys = (row if row[CHANGE_TYPE] != "delete" else {**row, "a": None, "b": None} for row in rows)
    return sorted((row[COMMIT_VERSION], row["id"], *map(str, row.values())) for row in keys)


def test_maintenance_gives_no_changes(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "a" / "b", pa.table({"id": [1, 2], "n": [1, 2]}), key=["id"])
    table.upsert(pa.table({"id": [1], "n": [5]}))
    before = table.version
    table.compact()
    assert table.version > before
    assert table.changes(before + 1).read_all().num_rows == 0


def test_columns_are_chosen_and_a_range_has_all_its_versions(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "a" / "b", pa.table({"id": [1, 2], "n": [1, 2]}), key=["id"])
    table.upsert(pa.table({"id": [1], "n": [5]}))
    found = table.changes(0, columns=["n"]).read_all()
    assert found.column_names == [CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIME, "n"]
    assert found.column("n").to_pylist() == [1, 2, 5]
    assert found.column(COMMIT_VERSION).to_pylist() == [0, 0, 1]


def test_a_restore_is_no_change_of_rows(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "a" / "b", pa.table({"id": [1], "n": [1]}), key=["id"])
    table.upsert(pa.table({"id": [1], "n": [2]}))
    table.restore(0)
    with pytest.raises(UnsupportedError, match="a restore, a rebuild or an overwrite removed rows"):
        table.changes(table.version).read_all()
    table.upsert(pa.table({"id": [1], "n": [3]}))
    assert table.changes(table.version).read_all().column("n").to_pylist() == [3]


def test_versions_that_are_not_there_are_named(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "a" / "b", pa.table({"id": [1]}), key=["id"])
    with pytest.raises(VersionNotFoundError, match="doesn't exist yet"):
        table.changes(0, 3).read_all()
    with pytest.raises(UsageError, match="no such column"):
        table.changes(0, columns=["m"])
