"""Each write of an adoption fails, or the process dies there: the table is unchanged or adopted.

If it isn't adopted yet, a second adoption succeeds.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import LakespliceError, StorageError, TableNotFoundError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.adoption.adopt import adopt_table
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from tests.support.by_hand import opened, require_sound_index
from tests.support.simulated import memory_folder

ONE = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})
# Of a type that the file can't keep, so that it is written anew.
TWO = pa.table({"id": pa.array([4, 5], pa.uint32()), "name": ["d", "e"]})
ROWS = [*ONE.to_pylist(), *TWO.to_pylist()]
WRITES = ("put_new", "writer", "delete")


def a_folder(path: Path) -> None:
    pq.write_table(ONE, path / "one.parquet")
    pq.write_table(TWO, path / "two.parquet")


def a_delta_table(path: Path) -> None:
    deltalake.write_deltalake(str(path), ONE)
    deltalake.write_deltalake(str(path), TWO.cast(ONE.schema), mode="append")


KINDS = {"a folder": a_folder, "a Delta table": a_delta_table}


@contextmanager
def made(kind: str) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(dir=memory_folder()))
    try:
        KINDS[kind](path)
        yield path
    finally:
        shutil.rmtree(path)


def adopted(store: Store, seed: int) -> None:
    adopt_table(store, ["id"], FixedClock(), SeededEntropy(seed))


def contents(path: Path) -> list[dict[str, object]]:
    """What a reader who knows nothing of us sees."""
    if (path / "_delta_log").exists() and any((path / "_delta_log").iterdir()):
        found = deltalake.DeltaTable(str(path)).to_pyarrow_table()
    else:
        found = pa.concat_tables(pq.read_table(f).cast(ONE.schema) for f in path.glob("*.parquet"))
    rows: list[dict[str, object]] = pa.table(found).select(["id", "name"]).sort_by("id").to_pylist()
    return rows


def require_whole(path: Path, seed: int) -> None:
    """The old table or the adopted one; in the end the adopted one, which takes upserts."""
    assert contents(path) == ROWS
    store = LocalStore(path)
    table = _ours(store)
    if table is None:
        adopted(store, seed)
        table = opened(store)
    assert contents(path) == ROWS
    assert table.read().sort_by("id").to_pylist() == ROWS
    table.upsert(pa.table({"id": [2, 9], "name": ["x", "y"]}), delete=pa.table({"id": [4]}))
    table.compact(threads=1)
    assert table.read().sort_by("id")["name"].to_pylist() == ["a", "x", None, "e", "y"]
    require_sound_index(store, table)


def _ours(store: Store) -> HandFedTable | None:
    try:
        return opened(store)
    except TableNotFoundError:
        return None


def calls(kind: str) -> tuple[Call, ...]:
    with made(kind) as path:
        store = FaultyStore(LocalStore(path))
        adopted(store, 1)
        return store.calls


def broken_off(kind: str, fault: Fault) -> None:
    with made(kind) as path:
        with suppress(Crash, StorageError):
            adopted(FaultyStore(LocalStore(path), [fault]), 1)
        require_whole(path, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER])
def test_a_process_that_dies_at_any_write_leaves_a_whole_table(kind: str, how: How) -> None:
    """One that dies at a read leaves what the write before it left."""
    for call in calls(kind):
        if call.method in WRITES:
            broken_off(kind, Fault.at(call.number, how))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [How.LOST, How.ANSWER_LOST])
def test_any_write_may_fail_before_or_after_its_effect(kind: str, how: How) -> None:
    for call in calls(kind):
        if call.method in WRITES:
            broken_off(kind, Fault.at(call.number, how))


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_recognises_its_commit_whose_answer_was_lost(kind: str) -> None:
    commits = _commit_of(kind)
    with made(kind) as path:
        adopted(FaultyStore(LocalStore(path), [Fault(commits, How.ANSWER_LOST)]), 1)
        require_whole(path, 2)


def _commit_of(kind: str) -> Callable[[Call], bool]:
    (last,) = [
        call
        for call in calls(kind)
        if call.path.startswith("_delta_log") and (call.method == "put_new")
    ]
    return lambda call: call.number == last.number


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_a_dead_adoption_left_are_no_rows(kind: str) -> None:
    with made(kind) as path:
        with suppress(LakespliceError, Crash):
            fault = Fault(lambda call: call.path.startswith("_delta_log/0"), How.CRASH_BEFORE)
            adopted(FaultyStore(LocalStore(path), [fault]), 1)
        require_whole(path, 3)
