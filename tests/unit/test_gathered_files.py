"""Compaction of many small files: they become one file, and a faulty one is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakesplice.errors import CorruptFileError, UsageError
from lakesplice.model.change import Op
from lakesplice.model.types import ColumnType
from lakesplice.planning.upkeep.gathering import FILES_MIN
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.commit import Conflict, commit
from lakesplice.table.protocol.intents import Splice
from lakesplice.table.upkeep import gathered
from lakesplice.table.upkeep.compact import compact_files, splice_of
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.made import GENERATION, MadeTable

FILES = 4


@pytest.fixture
def table(tmp_path: Path) -> MadeTable:
    made = MadeTable(tmp_path, EVERY_TYPE)
    made.insert(*([row(2 * at, LOW), row(2 * at + 1, LOW)] for at in range(FILES + 1)))
    # The last file has no waiting changes.
    made.change(*([(Op.UPDATE, row(2 * at, HIGH))] for at in range(FILES)))
    return made


def changed(table: MadeTable) -> list[str]:
    return [path for path, file in table.manifest.files.items() if table.manifest.waiting_in(file)]


def rows_bytes(table: MadeTable, paths: Sequence[str]) -> int:
    """How much memory the rows of these files take."""
    size = 0
    for path in paths:
        with open_base(table.store, table.manifest.files[path], EVERY_TYPE) as reader:
            size += sum(reader.read(at).nbytes for at in range(len(reader.row_groups)))
    return size


def planned(table: MadeTable) -> Splice:
    done = compact_files(
        table.store, table.manifest, changed(table), best_rewriter(), table.entropy
    )
    return splice_of(GENERATION, table.snapshot.version, [done])


@pytest.mark.slow
def test_the_log_has_one_new_file_for_all_that_it_replaces(
    table: MadeTable, tmp_path: Path
) -> None:
    sources = changed(table)
    *_, untouched = table.manifest.files
    done = table.compact(sources)
    assert done.counts["files_gathered"] == len(sources)
    assert splice_of(GENERATION, 0, [done]).files_written == 1
    assert done.counts["pages_encoded"] == len(EVERY_TYPE.arrow)
    assert done.counts["bytes_encoded"] > done.counts["bytes_copied"] == 0
    assert set(table.manifest.files) == {untouched, done.replaced[sources[0]].base.path}
    log = DeltaTable(str(tmp_path))
    assert len(log.file_uris()) == 2
    found = log.to_pyarrow_table().select(EVERY_TYPE.names)
    assert found.sort_by("c_long_0").to_pylist() == table.live()


@pytest.mark.slow
def test_values_that_equal_no_value_and_zeros_of_either_sign_are_written_as_they_are(
    table: MadeTable,
) -> None:
    column = next(c.name for c in EVERY_TYPE.columns if c.type == ColumnType.parse("double"))
    odd = [float("nan"), -0.0]
    table.change(*([(Op.UPDATE, {**row(2 * at, HIGH), column: odd[at]})] for at in range(2)))
    sources = changed(table)[:2]
    base = table.compact(sources).replaced[sources[0]].base
    with open_base(table.store, base, EVERY_TYPE) as reader:
        found = [value for part in reader.read_each([column]) for value in part.column(0)]
    assert [str(found[at].as_py()) for at in (0, 2)] == ["nan", "-0.0"]


@pytest.mark.slow
def test_fewer_files_than_make_a_gathering_are_spliced_each(table: MadeTable) -> None:
    paths = changed(table)[: FILES_MIN - 1]
    done = table.compact(paths)
    assert "files_gathered" not in done.counts
    assert len({new.base.path for new in done.replaced.values()}) == len(paths)


@pytest.mark.slow
def test_small_files_whose_rows_are_large_are_spliced_each(
    table: MadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered, "ROWS_BYTES_MAX", rows_bytes(table, changed(table)) - 1)
    done = table.compact(changed(table))
    assert "files_gathered" not in done.counts
    assert len(table.manifest.files) == FILES + 1
    monkeypatch.undo()
    for key in (0, 2):
        table.change([(Op.UPDATE, row(key, LOW))])
    monkeypatch.setattr(gathered, "ROWS_BYTES_MAX", rows_bytes(table, changed(table)))
    assert table.compact(changed(table)).counts["files_gathered"] == 2


def test_a_damaged_file_among_many_is_named(table: MadeTable, tmp_path: Path) -> None:
    path = changed(table)[2]
    data = (tmp_path / path).read_bytes()
    (tmp_path / path).write_bytes(data[:40] + b"!" + data[41:])
    with pytest.raises(CorruptFileError, match=path):
        planned(table)


@pytest.mark.slow
def test_a_change_for_another_row_names_the_file_of_that_row(table: MadeTable) -> None:
    path = changed(table)[2]
    group = table.manifest.files[path].segments[0].group
    table.addresses[4] = (group, 1)
    table.change([(Op.UPDATE, row(4, LOW))])
    with pytest.raises(CorruptFileError, match=path):
        planned(table)


@pytest.mark.slow
def test_a_gathering_that_lost_a_source_is_refused(table: MadeTable) -> None:
    intent, before = planned(table), table.snapshot
    table.compact(changed(table)[:1])
    made = commit(table.store, before, intent, clock=table.clock, entropy=table.entropy)
    assert isinstance(made, Conflict)


@pytest.mark.slow
def test_a_commit_whose_sources_are_in_another_order_than_their_segments_is_refused(
    table: MadeTable,
) -> None:
    intent = planned(table)
    turned = replace(intent, replaced=dict([*intent.replaced.items()][::-1]))
    with pytest.raises(UsageError, match="segments"):
        commit(table.store, table.snapshot, turned, clock=table.clock, entropy=table.entropy)
