"""A table fed by hand by several independent handles, compared with a dict."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lakesplice import Table
from lakesplice.apps.erasing.byte_search import files_in, search
from lakesplice.errors import UsageError
from lakesplice.model.names import CHANGE_TYPE
from lakesplice.planning.upkeep.clustering import ClusterPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.upserts.upsert_request import Upserted
from lakesplice.table.reading.scan import View
from tests.support.by_hand import (
    COLUMNS,
    Row,
    created,
    given,
    opened,
    require_rows,
    require_sound_index,
)
from tests.support.delta_feed import require_delta_feed
from tests.support.drawing import examples
from tests.support.row_merges import CLAUSES, MergeClause, merged
from tests.support.simulated import memory_folder

HANDLES = st.integers(0, 1)
KEYS = st.integers(0, 5)
MERGES = st.sampled_from([None, False, True])
VALUES = {
    "name": st.none() | st.sampled_from(["a", "b", "ü" * 20, ""]),
    "n": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
    "price": st.none() | st.decimals(-999, 999, places=2).map(Decimal),
}
ROWS = st.lists(
    st.fixed_dictionaries({"id": KEYS, **VALUES}), max_size=5, unique_by=lambda row: row["id"]
)
COLUMN_SETS = st.sets(st.sampled_from([*VALUES])).map(lambda names: ["id", *sorted(names)])

Where = tuple[str | None, Callable[[Row], bool]]
Sets = tuple[dict[str, Any], Callable[[Row], Row]]
INT_MAX = (1 << 31) - 1
SOUND = "coalesce(n, 0) > -9 OR name = 'a'"
CONDITIONS: list[Where] = [
    ("id >= 3", lambda row: row["id"] >= 3),
    ("n > 0 OR name IS NULL", lambda row: (row["n"] or 0) > 0 or row["name"] is None),
    (
        "price * 2 < n",
        lambda row: None not in (row["price"], row["n"]) and row["price"] * 2 < row["n"],
    ),
    ("length(name) = 0", lambda row: row["name"] == ""),
]
WHERES = st.sampled_from(CONDITIONS)
SETS: list[Sets] = [
    ({"n": 7, "name": None}, lambda row: {"n": 7, "name": None}),
    ({"n": "n + id"}, lambda row: {"n": None if row["n"] is None else row["n"] + row["id"]}),
    (
        {"name": "coalesce(name, 'none')", "price": "if(n > 0, 1.5, price)"},
        lambda row: {
            "name": "none" if row["name"] is None else row["name"],
            "price": Decimal("1.50") if (row["n"] or 0) > 0 else row["price"],
        },
    ),
]


class Upserts(RuleBasedStateMachine):
    """The dict holds what the table has to; a call that the table refuses changes neither."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.store = LocalStore(self.folder).within("shop/goods")
        self.truth: dict[int, Row] = {}
        self.checked = False
        self.told_since = 0
        self.transactions = 0
        self.last: tuple[list[Row], int] | None = None
        self.tables = [created(self.store, change_feed=True), opened(self.store, 99)]

    @rule(handle=HANDLES, rows=ROWS, columns=COLUMN_SETS, fills=st.booleans(), merge=MERGES)
    def write(
        self, handle: int, rows: list[Row], columns: list[str], fills: bool, merge: bool | None
    ) -> None:
        changes = given(rows, columns)
        new = [row["id"] for row in rows if row["id"] not in self.truth]
        if new and not fills and len(columns) < len(COLUMNS.names):
            with pytest.raises(UsageError, match="new rows need all columns"):
                self.tables[handle].upsert(changes)
            return
        done = self._done(
            _applied(self.truth, rows, columns),
            lambda: self.tables[handle].upsert(changes, fill_new_rows=fills, merge=merge),
        )
        assert done in (None, (len(new), len(rows) - len(new), 0))

    @rule(handle=HANDLES, keys=st.sets(KEYS), rows=ROWS, merge=MERGES)
    def delete_and_write(
        self, handle: int, keys: set[int], rows: list[Row], merge: bool | None
    ) -> None:
        kept = [row for row in rows if row["id"] not in keys]
        gone = given([{"id": key} for key in sorted(keys)], ["id"])
        changes = given(kept, COLUMNS.names)
        deleted = len(keys & self.truth.keys())
        left = {key: row for key, row in self.truth.items() if key not in keys}
        done = self._done(
            _applied(left, kept, COLUMNS.names),
            lambda: self.tables[handle].upsert(changes, delete=gone, merge=merge),
        )
        assert done is None or done[2] == deleted

    @rule(handle=HANDLES, merge=MERGES)
    def write_what_base_files_have(self, handle: int, merge: bool | None) -> None:
        """To a file this brings nothing new, and yet it undoes what waits."""
        table = self.tables[handle]
        rows = table.refresh().read(View.READ_OPTIMISED).to_pylist()
        changes = given(rows, COLUMNS.names)
        after = _applied(self.truth, rows, COLUMNS.names)
        self._done(after, lambda: table.upsert(changes, merge=merge))

    @rule(handle=HANDLES, rows=ROWS, repeats=st.booleans())
    def write_in_a_transaction(self, handle: int, rows: list[Row], repeats: bool) -> None:
        if repeats and self.last is not None:
            old, number = self.last
            changes = given(old, COLUMNS.names)
            assert self.tables[handle].upsert(changes, transaction=("p", number)).repeated
            return
        number = self.transactions + 1
        changes = given(rows, COLUMNS.names)
        done = self._done(
            _applied(self.truth, rows, COLUMNS.names),
            lambda: self.tables[handle].upsert(changes, transaction=("p", number)),
        )
        if done is not None:
            self.transactions, self.last = number, (rows, number)

    @rule(handle=HANDLES, where=WHERES, merge=MERGES)
    def delete_where(self, handle: int, where: Where, merge: bool | None) -> None:
        sql, holds = where
        done = self.tables[handle].delete(sql, merge=merge)
        kept = {key: row for key, row in self.truth.items() if not holds(row)}
        assert done.deleted == len(self.truth) - len(kept)
        self.truth = kept

    @rule(handle=HANDLES, values=st.sampled_from(SETS), where=WHERES, merge=MERGES)
    def update_where(self, handle: int, values: Sets, where: Where, merge: bool | None) -> None:
        (given, new), (sql, holds) = values, where
        changed = {key: {**row, **new(row)} for key, row in self.truth.items() if holds(row)}
        if any((row["n"] or 0) > INT_MAX for row in changed.values()):
            with pytest.raises(UsageError, match="can't hold"):
                self.tables[handle].update(given, sql, merge=merge)
            return
        update = self.tables[handle].update
        done = self._done(self.truth | changed, lambda: update(given, sql, merge=merge))
        assert done in (None, (0, len(changed), 0))

    @rule(handle=HANDLES, rows=ROWS, where=WHERES, merge=MERGES)
    def overwrite(self, handle: int, rows: list[Row], where: Where, merge: bool | None) -> None:
        sql, holds = where
        inside = [row for row in rows if holds(row)]
        kept = {key: row for key, row in self.truth.items() if not holds(row)}
        if any(row["id"] in kept for row in inside):
            with pytest.raises(UsageError, match="rows outside of the condition"):
                self.tables[handle].overwrite(given(inside, COLUMNS.names), sql, merge=merge)
            return
        replacing = given(inside, COLUMNS.names)
        self._done(
            kept | {row["id"]: row for row in inside},
            lambda: self.tables[handle].overwrite(replacing, sql, merge=merge),
        )

    @rule(
        handle=HANDLES,
        rows=ROWS,
        clauses=st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=4),
        merge=MERGES,
    )
    def merge(
        self, handle: int, rows: list[Row], clauses: list[MergeClause], merge: bool | None
    ) -> None:
        building = self.tables[handle].merge(given(rows, COLUMNS.names))
        for clause in clauses:
            building = clause.added_to(building)
        after, counts = merged(self.truth, rows, clauses)
        assert self._done(after, lambda: building.execute(merge=merge)) in (None, counts)

    @rule(keys=st.sets(KEYS, min_size=1))
    def erase(self, keys: set[int]) -> None:
        """By a handle of its own, as the command does; the others find only the new version."""
        folder = self.folder / "shop/goods"
        table = Table.open(folder)
        done = table.erase(sorted(keys), also_live=True)
        self.told_since = table.version
        assert done.live == len(keys & self.truth.keys())
        self.truth = {key: row for key, row in self.truth.items() if key not in keys}
        values = [f"column:id={key}" for key in sorted(keys)]
        assert search(files_in(folder), values) == {}

    @rule(handle=HANDLES)
    def constrain_or_not(self, handle: int) -> None:
        table = self.tables[handle]
        if self.checked:
            table.drop_constraint("sound")
        elif all(map(_is_sound, self.truth.values())):
            table.add_constraint("sound", SOUND)
        else:
            with pytest.raises(UsageError, match="break constraints"):
                table.add_constraint("sound", SOUND)
            return
        self.checked = not self.checked

    @rule(handle=HANDLES)
    def compact(self, handle: int) -> None:
        table = self.tables[handle]
        table.compact()
        assert not table.snapshot.manifest.deltas

    @rule(handle=HANDLES, by=st.sampled_from([["n"], ["name", "id"]]), full=st.booleans())
    def optimize(self, handle: int, by: list[str], *, full: bool) -> None:
        """What waits moves along; the feed shows nothing of it."""
        table = self.tables[handle]
        table.optimize(by, full=full, policy=ClusterPolicy(file_bytes=1_000))
        assert all(file.cube is not None for file in table.snapshot.manifest.files.values())
        assert table.optimize(by, dry_run=True).files == 0

    @invariant()
    def every_handle_shows_the_truth(self) -> None:
        for table in self.tables:
            # The one that did not write last is behind until it looks.
            require_rows(table.refresh(), self.truth)

    def teardown(self) -> None:
        require_sound_index(self.store, self.tables[0])
        self._require_told(self.tables[0])
        self.tables[0].compact()
        require_delta_feed(self.store, self.folder / "shop/goods")
        shutil.rmtree(self.folder)

    def _require_told(self, table: HandFedTable) -> None:
        """What each version changed, applied to an older one, gives the newest."""
        rows = {row["id"]: row for row in table.read(version=self.told_since).to_pylist()}
        for told in table.changes(self.told_since + 1).read_all().to_pylist():
            rows.pop(told["id"], None)
            if told[CHANGE_TYPE] != "delete":
                rows[told["id"]] = {name: told[name] for name in COLUMNS.names}
        assert rows == self.truth

    def _done(
        self, after: dict[int, Row], write: Callable[[], Upserted]
    ) -> tuple[int, int, int] | None:
        """Write, unless a constraint refuses it; return how many rows were inserted, updated and
        deleted.
        """
        if self.checked and not all(map(_is_sound, after.values())):
            with pytest.raises(UsageError, match="break constraints"):
                write()
            return None
        done = write()
        self.truth = after
        return done.inserted, done.updated, done.deleted


def _applied(truth: dict[int, Row], rows: list[Row], columns: list[str]) -> dict[int, Row]:
    after, empty = dict(truth), dict.fromkeys(COLUMNS.names)
    for row in rows:
        old: Row = after.get(row["id"], empty)
        after[row["id"]] = {**old, **{name: row[name] for name in columns}}
    return after


def _is_sound(row: Row) -> bool:
    return (row["n"] or 0) > -9 or row["name"] == "a"


TestUpserts = Upserts.TestCase
TestUpserts.settings = settings(max_examples=examples(24), stateful_step_count=20, print_blob=True)
