"""Each store call of a hand-fed table's life fails, or the process dies there; after repetition
each upsert is applied once.

The caller repeats each upsert until it knows the outcome, as its transactions allow.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import StorageError, TableNotFoundError, UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import create_table
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from tests.support.by_hand import (
    COLUMNS,
    Row,
    given,
    opened,
    require_rows,
    require_sound_index,
    rows_of,
    tools,
)
from tests.support.simulated import folder

WRITES = ("put_new", "writer", "delete")
READS = ("read", "open", "size", "list")
WHOLE = COLUMNS.names
Act = Callable[[HandFedTable], object]


def row(key: int, n: int = 0) -> Row:
    return {"id": key, "name": f"r{key}", "n": n, "price": None}


def upsert(
    number: int,
    rows: list[Row],
    columns: list[str],
    gone: tuple[int, ...] = (),
    merge: bool | None = None,
) -> Act:
    keys = given([row(key) for key in gone], ["id"])
    changes, transaction = given(rows, columns), ("crash test", number)
    return lambda table: table.upsert(
        changes, delete=keys, transaction=transaction, fill_new_rows=True, merge=merge
    )


OTHER_COLUMNS = pa.table({name: [1] for name in ("id", "n", "size")}).append_column(
    "name", pa.array(["one"])
)
ACTS: list[Act] = [
    upsert(1, [row(1, 5), row(4), row(5)], WHOLE),
    upsert(2, [row(2, 6)], ["id", "n"], gone=(1, 4)),
    lambda table: table.compact(threads=1),
    upsert(3, [row(1, 7), row(3, 8)], ["id", "n"]),
    upsert(4, [row(2, 9)], ["id", "n"], gone=(5,)),
    lambda table: table.compact(threads=1),
    upsert(5, [row(3, 4)], ["id", "n"]),
    upsert(6, [row(3), row(4), row(6)], ["id", "name"], gone=(2,), merge=True),
    upsert(7, [row(0)], WHOLE, merge=True),
    lambda table: table.update({"n": "n + id"}, "id <= 4", transaction=("crash test", 8)),
    lambda table: table.delete("n > 7", transaction=("crash test", 9), merge=True),
    lambda table: (
        table.merge(given([row(0, 3), row(5, 4)], WHOLE))
        .when_matched_update({"n": "source.n + target.n"})
        .when_not_matched_insert()
        .when_not_matched_by_source_delete("n IS NULL")
        .execute(transaction=("crash test", 10))
    ),
    lambda table: table.overwrite(
        OTHER_COLUMNS, overwrite_schema=True, transaction=("crash test", 11)
    ),
]
STATES: list[dict[int, Row]] = [{key: row(key) for key in (0, 1, 2, 3)}]
STATES.append({**STATES[-1], 1: row(1, 5), 4: row(4), 5: row(5)})
STATES.append({key: r for key, r in {**STATES[-1], 2: row(2, 6)}.items() if key not in (1, 4)})
STATES.append(STATES[-1])
_REVIVED: Row = {"id": 1, "name": None, "n": 7, "price": None}
STATES.append({**STATES[-1], 1: _REVIVED, 3: row(3, 8)})
STATES.append({key: r for key, r in {**STATES[-1], 2: row(2, 9)}.items() if key != 5})
STATES.append(STATES[-1])
STATES.append({**STATES[-1], 3: row(3, 4)})
_FEW: list[Row] = [{"id": key, "name": f"r{key}", "n": None, "price": None} for key in (4, 6)]
STATES.append({**STATES[-1], **{few["id"]: few for few in _FEW}})
del STATES[-1][2]
STATES.append(STATES[-1])  # the row was like that
STATES.append(
    {
        key: {**r, "n": r["n"] + key} if key <= 4 and r["n"] is not None else r
        for key, r in STATES[-1].items()
    }
)
STATES.append({key: r for key, r in STATES[-1].items() if r["n"] is None or r["n"] <= 7})
STATES.append({0: row(0, 3), 3: STATES[-1][3], 5: row(5, 4)})
STATES.append({1: {"id": 1, "n": 1, "size": 1, "name": "one"}})


def born(store: Store, seed: int) -> HandFedTable:
    with suppress(UsageError):  # it had taken effect, only its answer was lost
        create_table(store, given(STATES[0].values(), WHOLE), ["id"], tools(seed))
    return opened(store, seed + 1)


def play(store: Store) -> int:
    """Live the table's life, each act repeated once if the store fails; returns how far it came."""
    done = 0
    try:
        table = repeated(lambda: born(store, 1), lambda: born(store, 3))
        for act in ACTS:
            step = act
            repeated(lambda: step(table), lambda: step(table))  # noqa: B023  # called at once
            done += 1
    except (Crash, StorageError):
        pass
    return done


def repeated(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    try:
        return first()
    except StorageError:
        return second()


def finish(path: Path, done: int) -> None:
    """Another process finds a state of the life, and living it again from there ends it."""
    store = LocalStore(path)
    try:
        table = opened(store, 50)
        found = rows_of(table)
        assert found in STATES[done : done + 2]
    except TableNotFoundError:
        assert done == 0
    table = born(store, 60)
    for act in ACTS:
        act(table)
    require_rows(table, STATES[-1])
    require_sound_index(store, table)


@cache
def calls() -> tuple[Call, ...]:
    with folder() as path:
        store = FaultyStore(LocalStore(path))
        assert play(store) == len(ACTS)
        finish(path, len(ACTS))
        return store.calls


def broken_off(fault: Fault) -> None:
    with folder() as path:
        finish(path, play(FaultyStore(LocalStore(path), [fault])))


Numbers = Callable[..., list[int]]


@pytest.fixture
def numbers(request: pytest.FixtureRequest, seed: int) -> Numbers:
    """The calls that one way of failing tries: every 30th, each way others, by the seed; nightly
    every one.
    """
    every = 1 if request.config.getoption("--nightly") else 30

    def chosen(way: int, *methods: str) -> list[int]:
        found = [call.number for call in calls() if call.method in methods]
        return found[(seed + way) % every :: every]

    return chosen


def _nth_writer(at: int) -> Callable[[Call], bool]:
    """Counted by itself: deltas are read by several threads, so numbers may shift a little."""
    left = [at]

    def hits(call: Call) -> bool:
        if call.method != "writer":
            return False
        left[0] -= 1
        return left[0] == -1

    return hits


@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER])
def test_a_process_that_dies_at_any_write_leaves_a_whole_state(numbers: Numbers, how: How) -> None:
    for number in numbers(list(How).index(how), *WRITES):
        broken_off(Fault.at(number, how))


@pytest.mark.parametrize("how", [How.LOST, How.ANSWER_LOST])
def test_any_write_may_fail_once_before_or_after_its_effect(numbers: Numbers, how: How) -> None:
    for number in numbers(list(How).index(how), *WRITES):
        broken_off(Fault.at(number, how))


def test_any_file_under_way_may_be_cut_off(numbers: Numbers) -> None:
    every_one = [call.number for call in calls() if call.method == "writer"]
    for at in map(every_one.index, numbers(2, "writer")):
        broken_off(Fault(_nth_writer(at), How.CUT))


def test_any_read_may_fail_once(numbers: Numbers) -> None:
    for number in numbers(0, *READS):
        broken_off(Fault.at(number, How.LOST))


def test_a_store_may_fail_for_good_from_any_write_on(numbers: Numbers) -> None:
    for number in numbers(1, *WRITES):
        broken_off(Fault.since(number, How.LOST))
