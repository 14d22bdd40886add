"""Flipped bits in files of every kind give an error that names the file, or the correct content."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakesplice.errors import CorruptFileError, LakespliceError, VersionNotFoundError
from lakesplice.spark.jobs.batch_plan import TaskError
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.index_check import check, rebuild
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.scenario import Scenario
from tests.support.simulated import Rows, require_finished, require_true, rows_of

FLIPS, FLIPS_NIGHTLY = 24, 120
# Of the scenario's steps: something waits then, and little came after the checkpoint.
UNTIL_CARE = 8
KINDS = {
    "base files": "base/*.parquet",
    "deltas": "_lakesplice/deltas/*.parquet",
    "manifests": "_lakesplice/manifests/*.json",
    "commits": "_delta_log/*.json",
    "checkpoints": "_delta_log/*.checkpoint.parquet",
    "the hint": "_delta_log/_last_checkpoint",
}


class Whole:
    """A table with something in every kind of file, and what it holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenario = Scenario()
        for step in self.scenario.steps(LocalStore(folder), LocalStore(folder))[:UNTIL_CARE]:
            step()
        self._seeds = itertools.count(1000)
        self.driver = self.restarted(LocalStore(folder))
        self.root = folder / self.driver.name.path
        self.store = self.driver.table.store
        self.rows = self.read()
        require_true(self.scenario.source, self.store)

    def restarted(self, lake: LocalStore) -> SimulatedDriver:
        """A driver that draws names which no driver before it drew, as a real one does."""
        return self.scenario.driver(lake, seed=next(self._seeds))

    def read(self) -> tuple[Rows, Rows]:
        return rows_of(self.store), rows_of(self.store, View.READ_OPTIMISED)

    def live(self, pattern: str) -> list[Path]:
        """The files of a kind that the newest version rests on."""
        manifest = open_snapshot(self.store).manifest
        live = {
            "base": manifest.files,
            "_lakesplice/deltas": [d.file.path for d in manifest.deltas],
        }
        found = []
        for path in sorted(self.root.glob(pattern)):
            name = path.relative_to(self.root).as_posix()
            named = live.get(name.rpartition("/")[0])
            if named is None or name in named:
                found.append(path)
        return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("damage"))


def require_named(path: Path, error: LakespliceError) -> None:
    """The error says which file it is; one of the log may be named by its version."""
    digits = path.name.partition(".")[0].partition("-")[0]
    names = (path.name, digits, f"version={int(digits)}") if digits.isdigit() else (path.name,)
    assert any(name in str(error) for name in names), error


def flipped(path: Path, seed: int, flips: int) -> Iterator[int]:
    """Flip one bit after another, each time put back; yields where."""
    written = path.read_bytes()
    places = random.Random(seed)
    try:
        for at in sorted(places.sample(range(len(written)), min(flips, len(written)))):
            damaged = bytearray(written)
            damaged[at] ^= 1 << places.randrange(8)
            path.write_bytes(damaged)
            yield at
    finally:
        path.write_bytes(written)


@pytest.fixture
def flips(request: pytest.FixtureRequest) -> int:
    """How many bits of a file are flipped, each of which takes a read of the table."""
    return FLIPS_NIGHTLY if request.config.getoption("--nightly") else FLIPS


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_named_or_changes_nothing(
    whole: Whole, kind: str, flips: int, seed: int
) -> None:
    files = whole.live(KINDS[kind])
    assert files
    for number, path in enumerate(files):
        for at in flipped(path, seed + number, flips):
            try:
                found = whole.read()
            except (CorruptFileError, VersionNotFoundError) as error:
                require_named(path, error)
                continue
            assert found == whole.rows, f"wrong rows in silence: {path.name} at {at}"
    assert whole.read() == whole.rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_off_is_named_or_changes_nothing(whole: Whole, kind: str) -> None:
    for path in whole.live(KINDS[kind]):
        written = path.read_bytes()
        try:
            for length in {0, 1, len(written) // 2, len(written) - 1}:
                path.write_bytes(written[:length])
                try:
                    found = whole.read()
                except (CorruptFileError, VersionNotFoundError) as error:
                    require_named(path, error)
                    continue
                assert found == whole.rows, f"wrong rows in silence: {path.name} of {length}"
        finally:
            path.write_bytes(written)


def test_compaction_copies_no_damaged_page(
    whole: Whole, tmp_path: Path, flips: int, seed: int
) -> None:
    for path in (*whole.live(KINDS["base files"]), *whole.live(KINDS["deltas"])):
        for at in flipped(path, seed, flips // 3):
            try:
                planned = whole.driver.plan_compaction()
            except CorruptFileError as error:
                require_named(path, error)
                continue
            assert planned is not None
            copy = tmp_path / f"{path.name}-{at}"
            shutil.copytree(whole.folder, copy)
            driver = whole.restarted(LocalStore(copy))
            assert isinstance(driver.table.commit(planned), Committed)
            if path.relative_to(whole.root).as_posix() not in driver.table.manifest.files:
                assert rows_of(driver.table.store) == whole.rows[0], (path.name, at)


def test_a_damaged_run_is_refused_reported_and_rebuilt(
    whole: Whole, tmp_path: Path, flips: int, seed: int
) -> None:
    snapshot = whole.driver.table.snapshot
    assert snapshot is not None
    for number, ref in enumerate(snapshot.manifest.runs):
        path = whole.root / ref.file.path
        for at in flipped(path, seed + number, flips):
            outcome = whole.restarted(LocalStore(whole.folder)).attempt()
            assert isinstance(outcome, TaskError), (path.name, at)
            assert outcome.kind == "CorruptFileError"
            assert path.name in outcome.message
            report = check(whole.store, snapshot)
            assert [name for name, _ in report.damaged] == [ref.file.path]
            assert not report.sound
    last = whole.root / snapshot.manifest.runs[-1].file.path
    copy = LocalStore(tmp_path / "copy")
    shutil.copytree(whole.folder, copy.root)
    (copy.root / last.relative_to(whole.folder)).write_bytes(b"")
    driver = whole.restarted(copy)
    assert driver.table.snapshot is not None
    run = rebuild(driver.table.store, driver.table.snapshot, SeededEntropy(9))
    healed = Redirect(1, driver.table.snapshot.version, runs=(run,))
    assert isinstance(driver.table.commit(healed), Committed)
    assert driver.batch() is CommitOutcome.DONE
    driver.compact()
    require_finished(whole.scenario.source, driver)
