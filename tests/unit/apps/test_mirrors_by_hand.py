"""Iceberg mirrors of tables that are fed by hand follow when their program or a command asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.errors import ConfigurationError, UsageError
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from tests.support.command_line import CommandLine
from tests.support.mirror_scene import MirroredScene
from tests.support.mirrors import mirror_of, rows_of_snapshot, sqlite_catalog

NAME = TableName("shop", "orders")


@pytest.fixture
def catalog(tmp_path: Path) -> dict[str, str]:
    return sqlite_catalog(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "lake" / "shop" / "orders"
    Table.create(made, pa.table({"id": [1, 2], "n": [1, 2]}), key="id")
    return made


def change(folder: Path, key: int) -> Table:
    """Change a row, so that base files have it."""
    table = Table.open(folder)
    table.upsert(pa.table({"id": [key], "n": [100 + key]}))
    table.compact()
    return table


def shown(folder: Path, catalog: dict[str, str]) -> list[dict[str, Any]]:
    """The rows that pyiceberg finds in the newest snapshot of the mirror; each can be read."""
    state = mirror_of(catalog, LocalStore(folder), NAME).load()
    assert state is not None
    return [rows_of_snapshot(state, one.id) for one in state.snapshots][-1]


def rows(folder: Path) -> list[dict[str, Any]]:
    found = Table.open(folder).read(View.READ_OPTIMISED)
    listed: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return listed


@pytest.mark.slow
def test_a_mirror_shows_all_that_came_since_it_was_called_last(
    folder: Path, catalog: dict[str, str]
) -> None:
    begun = Table.open(folder).mirror_iceberg(catalog)
    assert (begun.before, begun.begun) == (None, "the catalog has no such table")
    assert shown(folder, catalog) == rows(folder)
    for key in (1, 2, 3):
        table = change(folder, key)
    lacks = table.mirror_iceberg(catalog, dry_run=True)
    assert (lacks.before, lacks.version) == (begun.version, table.version)
    assert lacks.added
    assert shown(folder, catalog) != rows(folder)
    table.vacuum(retention_hours=0, readers_may_fail=True)
    assert shown(folder, catalog), "a vacuum leaves the files that the mirror shows"
    assert table.mirror_iceberg(catalog).begun == ""
    assert shown(folder, catalog) == rows(folder)
    assert table.mirror_iceberg(catalog, dry_run=True).added == 0
    assert table.mirror_iceberg(catalog, retention_hours=0).forgotten == 1
    table.end_iceberg_mirror(catalog)
    table.end_iceberg_mirror(catalog)
    assert mirror_of(catalog, LocalStore(folder), NAME).load() is None
    assert not list(LocalStore(folder).list("_lakesplice/iceberg"))


@pytest.mark.slow
def test_a_mirror_that_can_not_be_says_why(folder: Path, catalog: dict[str, str]) -> None:
    table, other = Table.open(folder), folder.parent.parent.parent / "other" / "shop" / "orders"
    table.mirror_iceberg(catalog)
    Table.create(other, pa.table({"id": [1]}), key="id")
    with pytest.raises(UsageError, match="another table of this name"):
        Table.open(other).mirror_iceberg(catalog)
    Table.open(other).mirror_iceberg(catalog, namespace="elsewhere")
    with pytest.raises(UsageError, match="name the Iceberg catalog"):
        table.mirror_iceberg({})
    with pytest.raises(ConfigurationError, match=r"iceberg\.catalog"):
        table.mirror_iceberg({"type": "rest"})
    assert shown(folder, catalog) == rows(folder)


def test_a_table_of_a_topic_is_mirrored_by_its_service(tmp_path: Path) -> None:
    scene = MirroredScene(tmp_path)
    scene.live(1)
    table = Table.open(tmp_path / "lake" / "one" / "goods")
    for call in (table.mirror_iceberg, table.end_iceberg_mirror):
        with pytest.raises(UsageError, match=r"also: \[iceberg\]"):
            call(scene.catalog)
    assert table.mirror_iceberg(scene.catalog, dry_run=True).added


@pytest.mark.slow
def test_the_command_follows_says_how_far_it_is_and_ends(
    lakesplice: CommandLine, folder: Path, catalog: dict[str, str]
) -> None:
    given = [part for name, value in catalog.items() for part in ("--catalog", f"{name}={value}")]
    behind = lakesplice("mirror", folder, *given, "--check")
    assert (behind.code, "must begin" in behind.out) == (1, True)
    done = lakesplice("mirror", folder, *given, "--json")
    assert (done.code, done.rows[0]["added"]) == (0, len(list(folder.glob("base/*"))))
    change(folder, 1)
    behind = lakesplice("mirror", folder, *given, "--check")
    assert (behind.code, "the newest is" in behind.out) == (1, True)
    assert lakesplice("mirror", folder, *given).code == 0
    assert lakesplice("mirror", folder, *given, "--check").code == 0
    new_column = pa.table({"id": [1], "note": ["x"]})
    Table.open(folder).upsert(new_column, merge_schema=True, merge=False)
    behind = lakesplice("mirror", folder, *given, "--check")
    assert (behind.code, "it has other columns" in behind.out) == (1, True)
    assert lakesplice("mirror", folder, *given).code == 0
    assert lakesplice("mirror", folder, *given, "--check").code == 0
    assert lakesplice("mirror", folder, *given, "--end").code == 0
    assert lakesplice("mirror", folder, "--catalog", "type").code == 2
