"""Each store call of a table's life fails, or the process dies there; the final table is the same.

The scenario runs once to count its calls, then once for each call and kind of failure. Afterwards
the next driver, on a working store, must reach the correct rows in both views.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from lakesplice.errors import StorageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from tests.support.delta_feed import require_delta_feed
from tests.support.scenario import Scenario
from tests.support.simulated import folder, require_finished, require_tidy, require_true

WRITES = ("put_new", "writer", "delete")
# So that the cases of a file are some groups that can be told apart, not hundreds of names.
GROUPS = 4
# Lives per way of failing in the gate, and with a full disk; each takes more than a second.
LIVES, LIVES_ON_A_FULL_DISK, LIVES_ON_A_FULL_DISK_NIGHTLY = 2, 2, 40


def play(scenario: Scenario, path: Path, lake: Store) -> bool:
    """Play the scenario as the service would; False if the process died."""
    try:
        with suppress(StorageError):
            for step in scenario.steps(LocalStore(path), lake):
                with suppress(StorageError):
                    step()
    except Crash:
        return False
    return True


@cache
def calls() -> tuple[Call, ...]:
    with folder() as path:
        scenario, store = Scenario(), FaultyStore(LocalStore(path))
        assert play(scenario, path, store)
        require_finished(scenario.source, scenario.finish(LocalStore(path)))
        return store.calls


class Faulty:
    """Makes a store with one fault."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def __call__(self, inner: Store) -> Store:
        return FaultyStore(inner, [self.fault])


def broken_off(lake_of: Faulty) -> None:
    with folder() as path:
        scenario = Scenario()
        died = not play(scenario, path, lake_of(LocalStore(path)))
        driver = scenario.finish(LocalStore(path))
        require_finished(scenario.source, driver)
        assert died or driver.table.snapshot is not None
        require_delta_feed(driver.table.store, path / driver.name.path)
        scenario.tidy(driver)
        require_tidy(driver.table.store)
        require_finished(scenario.source, driver)


Numbers = Callable[..., list[int]]


@pytest.fixture
def numbers(request: pytest.FixtureRequest, seed: int) -> Numbers:
    """The calls that one way of failing tries: some, evenly spread, each way others, by the seed;
    nightly every one.
    """
    nightly = request.config.getoption("--nightly")

    def chosen(way: int, group: int, *methods: str) -> list[int]:
        found = [call.number for call in calls() if call.method in methods]
        every = 1 if nightly else len(found) // LIVES
        return found[(seed + way) % every :: every][group::GROUPS]

    return chosen


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER])
def test_a_process_that_dies_at_any_write_loses_nothing(
    numbers: Numbers, how: How, group: int
) -> None:
    for number in numbers(list(How).index(how), group, *WRITES):
        broken_off(Faulty(Fault.at(number, how)))


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("how", [How.LOST, How.ANSWER_LOST])
def test_any_write_may_fail_once_before_or_after_its_effect(
    numbers: Numbers, how: How, group: int
) -> None:
    for number in numbers(list(How).index(how), group, *WRITES):
        broken_off(Faulty(Fault.at(number, how)))


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_store_may_fail_for_good_from_any_write_on(numbers: Numbers, group: int) -> None:
    for number in numbers(1, group, *WRITES):
        broken_off(Faulty(Fault.since(number, How.LOST)))


@pytest.mark.parametrize("group", range(GROUPS))
def test_any_file_under_way_may_be_cut_off(numbers: Numbers, group: int) -> None:
    for number in numbers(2, group, "writer"):
        broken_off(Faulty(Fault.at(number, How.CUT)))


@pytest.mark.parametrize("group", range(GROUPS))
def test_any_read_may_fail_once(numbers: Numbers, group: int) -> None:
    for number in numbers(0, group, "read", "open", "size", "list", "modified_ms"):
        broken_off(Faulty(Fault.at(number, How.LOST)))


def test_the_table_is_true_after_every_write_of_the_scenario() -> None:
    """Who reads at any moment sees a version that is the truth at its own offsets."""
    with folder() as path:
        scenario, bare = Scenario(), LocalStore(path)
        table = bare.within("shop/goods")

        def look(call: Call) -> None:
            if call.method in WRITES and table.size("_delta_log/00000000000000000000.json"):
                require_true(scenario.source, table)

        store = FaultyStore(bare, before_call=look)
        for step in scenario.steps(bare, store):
            step()


class FullDisk:
    """`Store` whose disk is full once `left` bytes were written."""

    def __init__(self, inner: Store, left: list[int]) -> None:
        self._inner = inner
        self._left = left

    @classmethod
    def of(cls, path: Path, left: list[int]) -> Store:
        """A disk's folder; most of what a store does is passed on, which no type tells."""
        return cast(Store, cls(LocalStore(path), left))

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def within(self, path: str) -> FullDisk:
        return FullDisk(self._inner.within(path), self._left)

    def put_new(self, path: str, data: bytes) -> bool:
        if self._left[0] < len(data):
            self._left[0] = 0
            raise StorageError("the disk is full", path=path)
        self._left[0] -= len(data)
        return self._inner.put_new(path, data)

    @contextmanager
    def writer(self, path: str) -> Iterator[pa.NativeFile]:
        with self._inner.writer(path) as sink:
            file = pa.PythonFile(_Bounded(sink, self._left), mode="w")
            yield file
            file.flush()


class _Bounded:
    def __init__(self, sink: pa.NativeFile, left: list[int]) -> None:
        self._sink = sink
        self._left = left
        self.closed = False

    def write(self, data: bytes) -> int:
        if self._left[0] < len(data):
            self._sink.write(data[: self._left[0]])
            self._left[0] = 0
            raise OSError(errno.ENOSPC, "No space left on device")
        self._left[0] -= len(data)
        return int(self._sink.write(data))

    def flush(self) -> None:
        self._sink.flush()

    def tell(self) -> int:
        return int(self._sink.tell())

    def close(self) -> None:
        self.closed = True


def written() -> int:
    with folder() as path:
        left = [1 << 40]
        assert play(Scenario(), path, FullDisk.of(path, left))
        return (1 << 40) - left[0]


def test_the_disk_may_be_full_after_any_number_of_bytes(request: pytest.FixtureRequest) -> None:
    nightly = request.config.getoption("--nightly")
    lives = LIVES_ON_A_FULL_DISK_NIGHTLY if nightly else LIVES_ON_A_FULL_DISK
    total = written()
    for left in range(0, total, -(-total // lives)):
        with folder() as path:
            scenario = Scenario()
            play(scenario, path, FullDisk.of(path, [left]))
            require_finished(scenario.source, scenario.finish(LocalStore(path)))
