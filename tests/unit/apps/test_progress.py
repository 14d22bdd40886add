"""Long work reports how much there is to do, and then does exactly that much."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table, splice_file
from lakesplice.apps.erasing.searched_table import search_table
from lakesplice.apps.lake import table_store
from lakesplice.planning.upkeep.clustering import ClusterPolicy
from lakesplice.planning.upkeep.file_merge import FILE_MERGE_POLICY
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.upkeep.index_check import check, rebuild
from tests.support.command_line import CommandLine

FILES = 4


class Watcher:
    """`Progress` that remembers what was said to it."""

    def __init__(self) -> None:
        self.expected = 0
        self.steps: list[int] = []

    def expect(self, units: int) -> None:
        self.expected += units

    def advance(self, units: int) -> None:
        self.steps.append(units)

    def ended(self, steps_min: int) -> None:
        """Everything that was announced was done, in some steps; then forget it."""
        assert sum(self.steps) == self.expected > 0
        assert len(self.steps) >= steps_min
        self.expected, self.steps = 0, []


def rows(start: int, value: str = "a") -> pa.Table:
    ids = list(range(start, start + 10))
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"{value}{id_}" for id_ in ids]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a table, or of files."""
    return tmp_path / "lake" / "shop" / "items"


@pytest.fixture
def table(folder: Path) -> Table:
    """A table with four base files, a change waiting for each."""
    made = Table.create(folder, rows(0), key=["id"])
    for number in range(1, FILES):
        made.upsert(rows(100 * number), merge=False)
    for number in range(FILES):
        made.upsert(rows(100 * number, "b").slice(3, 1), merge=False)
    assert len(made.snapshot.manifest.files) == FILES
    return made


@pytest.mark.slow
def test_work_on_a_table_does_as_much_as_it_announced(table: Table, folder: Path) -> None:
    watcher = Watcher()
    table.compact(progress=watcher)
    watcher.ended(FILES)
    table.purge(older_than_hours=0, progress=watcher)
    watcher.ended(FILES)
    store = table_store(folder, {})
    check(store, table.snapshot, entries_per_part=20, progress=watcher)
    watcher.ended(2 * FILES)
    rebuild(store, table.snapshot, SystemEntropy(), entries_per_part=20, progress=watcher)
    watcher.ended(2 * FILES)


@pytest.mark.slow
def test_an_erasure_and_the_search_after_it_do_as_much_as_they_announced(
    table: Table, folder: Path
) -> None:
    watcher, wanted = Watcher(), [100 * number for number in range(FILES)]
    table.erase(wanted, also_live=True, progress=watcher)
    watcher.ended(FILES)
    found = search_table(table_store(folder, {}), ["hex:00112233"], watcher)
    watcher.ended(found.files)


def test_a_search_passes_over_files_that_a_running_service_deletes_meanwhile(folder: Path) -> None:
    Table.create(folder, rows(0), key=["id"])

    class Deleting(Watcher):
        def expect(self, units: int) -> None:
            super().expect(units)
            next(folder.glob("base/*.parquet")).unlink()

    watcher = Deleting()
    found = search_table(table_store(folder, {}), ["a1"], watcher)
    assert found.files == watcher.expected - 1
    watcher.ended(1)


@pytest.mark.slow
def test_a_merge_of_small_files_does_as_much_as_it_announced(folder: Path) -> None:
    made = Table.create(folder, rows(0), key=["id"])
    for number in range(1, FILE_MERGE_POLICY.files_max + 1):
        made.upsert(rows(100 * number), merge=False)
    watcher = Watcher()
    assert made.merge_files(progress=watcher).files
    watcher.ended(1)


@pytest.mark.slow
def test_to_lay_out_a_table_takes_as_much_as_it_announced(table: Table) -> None:
    watcher = Watcher()
    made = table.optimize(["name"], policy=ClusterPolicy(file_bytes=1_000), progress=watcher)
    assert made.files_written > 1
    watcher.ended(made.files + made.files_written)


def test_an_adoption_does_as_much_as_it_announced(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(rows(100 * number), folder / f"{number}.parquet")
    watcher = Watcher()
    Table.adoption(folder, key=["id"], progress=watcher)
    watcher.ended(FILES)
    Table.adopt(folder, key=["id"], progress=watcher)
    watcher.ended(FILES)


def test_a_splice_says_how_many_bytes_of_its_file_it_came_through(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(rows(0), source, write_page_index=True)
    watcher = Watcher()
    change = rows(0, "b").slice(3, 1)
    splice_file(source, change, tmp_path / "new.parquet", key="id", progress=watcher)
    assert watcher.expected == source.stat().st_size
    # The new file's end, with its magic number, is written without being counted.
    assert 0 < sum(watcher.steps) <= (tmp_path / "new.parquet").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "compact {table}",
        "purge {table} --older-than 1h",
        "optimize {table} --by name",
        "index check {table}",
        "index rebuild {table}",
        "merge {many}",
        "adopt {files} --key id",
        "splice {files}/0.parquet --changes {files}/1.parquet --out {files}/new --key id",
    ],
)
def test_long_work_shows_its_progress_on_a_terminal_and_nowhere_else(
    lakesplice: CommandLine, table: Table, folder: Path, tmp_path: Path, command: str
) -> None:
    assert table.snapshot.manifest.deltas
    files, many = tmp_path / "files", tmp_path / "lake" / "shop" / "many"
    if "{files}" in command:
        files.mkdir()
        for number in range(2):
            found = rows(100 * number if command.startswith("adopt") else 0)
            pq.write_table(found, files / f"{number}.parquet", write_page_index=True)
    if "{many}" in command:
        made = Table.create(many, rows(0), key=["id"])
        for number in range(1, FILE_MERGE_POLICY.files_max + 1):
            made.upsert(rows(100 * number), merge=False)
    words = command.format(table=folder, files=files, many=many).split()
    with pytest.MonkeyPatch.context() as terminal:
        terminal.setenv("TTY_COMPATIBLE", "1")
        shown = lakesplice(*words)
    assert (shown.code, "left:" in shown.err) == (0, True), shown.err
    assert "left:" not in lakesplice(*words).err
