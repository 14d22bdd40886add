"""The faulty store: which calls fail, when, and what they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import StorageError
from lakesplice.storage.local import LocalStore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How


@pytest.fixture
def disk(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def _write(store: FaultyStore, path: str, data: bytes) -> None:
    with store.writer(path) as sink:
        sink.write(data)


def test_calls_are_counted_with_their_paths_from_the_outermost_root(disk: LocalStore) -> None:
    store = FaultyStore(disk)
    store.within("x").put_new("y", b"")
    store.size("x/y")
    assert store.calls == (Call(0, "put_new", "x/y"), Call(1, "size", "x/y"))


@pytest.mark.parametrize(("how", "left"), [(How.LOST, None), (How.ANSWER_LOST, 4), (How.CUT, 2)])
def test_a_put_fails_before_or_after_its_effect_or_half_way(
    disk: LocalStore, how: How, left: int | None
) -> None:
    store = FaultyStore(disk, [Fault.at(0, how)])
    with pytest.raises(StorageError):
        store.put_new("file", b"data")
    assert disk.size("file") == left
    store.size("file")


@pytest.mark.parametrize(("how", "left"), [(How.LOST, None), (How.ANSWER_LOST, 4), (How.CUT, None)])
def test_a_writer_fails_before_or_after_its_effect_or_at_its_end(
    disk: LocalStore, how: How, left: int | None
) -> None:
    store = FaultyStore(disk, [Fault.on("writer", "fi", how)])
    with pytest.raises(StorageError):
        _write(store, "file", b"data")
    assert disk.size("file") == left


def test_a_read_can_be_cut(disk: LocalStore) -> None:
    disk.put_new("file", b"data")
    store = FaultyStore(disk, [Fault.on("read", "", How.CUT), Fault.on("open", "", How.CUT)])
    assert store.read("file") == b"da"
    assert store.open("file").read() == b"da"
    assert store.read("file") == b"data"


def test_after_a_crash_nothing_answers_any_more(disk: LocalStore) -> None:
    store = FaultyStore(disk, [Fault.at(1, How.CRASH_AFTER)])
    store.put_new("a", b"")
    with pytest.raises(Crash):
        store.put_new("b", b"")
    with pytest.raises(Crash):
        store.put_new("c", b"")
    assert list(disk.list("")) == ["a", "b"]


def test_a_crash_within_a_writer_leaves_half_a_file(disk: LocalStore) -> None:
    store = FaultyStore(disk, [Fault.on("size", "", How.CRASH_BEFORE)])

    def write_and_die() -> None:
        with store.writer("file") as sink:
            sink.write(b"data")
            store.size("other")

    with pytest.raises(Crash):
        write_and_die()
    assert disk.read("file") == b"da"


def test_before_call_may_act_as_somebody_else(disk: LocalStore) -> None:
    def act(call: Call) -> None:
        disk.put_new(call.path, b"theirs")

    store = FaultyStore(disk, before_call=act)
    assert not store.put_new("file", b"ours")
    assert disk.read("file") == b"theirs"


def test_a_fixed_clock_moves_only_when_told_to() -> None:
    clock = FixedClock(1000)
    assert clock.advance(1.5)
    assert (clock.now_ms(), clock.monotonic()) == (2500, 1.5)
    clock.jump_to(3)
    assert (clock.now_ms(), clock.monotonic()) == (3, 1.5)


def test_seeded_entropy_repeats_itself() -> None:
    assert [SeededEntropy(7).bits(64) for _ in range(2)] == [SeededEntropy(7).bits(64)] * 2
    assert SeededEntropy(7).bits(64) != SeededEntropy(8).bits(64)
