"""Compares a table's changes with its rows: applies them, version by version."""

from __future__ import annotations

from typing import Any

from lakesplice.errors import UnsupportedError
from lakesplice.model.names import CHANGE_TYPE, COMMIT_TIME, COMMIT_VERSION
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.protocol.transitions import RESTORE
from lakesplice.table.reading.changes import ChangesPart, changes_of
from lakesplice.table.reading.table import Table
from lakesplice.table.reading.versions import read_version
from tests.support.simulated import rows_of

_PARTS = 3


def require_feed(store: Store) -> None:
    """Changes from any version on give each later one, a change per row that became another.

    So do those of a version when its parts are read by themselves. A restored version is read as
    it is.
    """
    newest = Table(store)
    for version in range(1, newest.version + 1):
        before = {row["id"]: row for row in rows_of(store, version=version - 1)}
        after = {row["id"]: row for row in rows_of(store, version=version)}
        try:
            told = newest.changes(version, version).read_all().to_pylist()
        except UnsupportedError:
            assert read_version(store, version).operation == RESTORE
            continue
        assert {row["id"] for row in told} <= _moved_on(store, version)
        assert len({row["id"] for row in told}) == len(told), "a row's change twice"
        for row in told:
            kind, _, _ = (row.pop(name) for name in (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIME))
            if kind == "delete":
                before.pop(row["id"], None)
            else:
                before[row["id"]] = row
        names = Table(store, version).schema.names
        found = {key: {name: row[name] for name in names} for key, row in before.items()}
        assert found == after, version
        _require_parts(store, version, told)


def _moved_on(store: Store, version: int) -> set[int]:
    """The keys whose newest position is another than a version before."""
    then, now = _positions(store, version - 1), _positions(store, version)
    return {key for key, place in now.items() if then.get(key) != place}


def _positions(store: Store, version: int) -> dict[int, tuple[int, int]]:
    rows = Table(store, version).read(include_deleted=True, include_system=True).to_pylist()
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        place = row["_position_file"], row["_position_offset"]
        found[row["id"]] = max(place, found.get(row["id"], place))
    return found


def _require_parts(store: Store, version: int, told: list[dict[str, Any]]) -> None:
    schema = open_snapshot(store).manifest.schema
    parts = [
        changes_of(store, version, schema.key, schema, ChangesPart(at, _PARTS))
        for at in range(_PARTS)
    ]
    keys = [row["id"] for part in parts for table in part for row in table.to_pylist()]
    assert sorted(keys) == sorted(row["id"] for row in told)
