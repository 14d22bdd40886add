from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError, MissingFileError
from lakesplice.formats.checksum import checksum
from lakesplice.model.change import Op
from lakesplice.model.manifest import FileRef, RunRef
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import locate
from lakesplice.table.files.index_runs import RunCache, open_run, write_merged
from lakesplice.table.protocol.layout import run_path
from lakesplice.table.upkeep.index_check import check, rebuild
from tests.support.indexed import IndexedTable

SCHEMA = TableSchema(
    (
        Column(0, "id", "id", ColumnType(Primitive.LONG), "BIGINT"),
        Column(1, "name", "name", ColumnType(Primitive.STRING), "TEXT"),
    ),
    ("id",),
    (0, 2),
)


def row(key: int) -> dict[str, object]:
    return {"id": key, "name": f"name {key}"}


@pytest.fixture
def table(tmp_path: Path) -> IndexedTable:
    made = IndexedTable(tmp_path, SCHEMA)
    made.insert([row(at) for at in range(10)], [row(at) for at in range(10, 14)])
    made.insert([row(at) for at in range(20, 23)])
    made.change([(Op.UPDATE, row(3)), (Op.DELETE, row(4))])
    return made


def places(table: IndexedTable, runs: RunCache | None = None) -> dict[int, tuple[int, int]]:
    """Where the index says that each key is."""
    keys = sorted(table.addresses)
    hashes = key_hash(pa.table({"id": pa.array(keys, pa.int64())}), SCHEMA)
    opened = (runs or RunCache()).open_runs(table.store, table.manifest.runs)
    live = np.array(sorted(table.manifest.groups), np.int64)
    group, at = locate(opened, hashes, live)
    return dict(zip(keys, zip(group.tolist(), at.tolist(), strict=True), strict=True))


def path_of(table: IndexedTable, ref: RunRef) -> Path:
    return table.store.root / ref.file.path


def heal(table: IndexedTable) -> None:
    run = rebuild(table.store, table.snapshot, table.entropy)
    table.set_runs(run)
    report = check(table.store, table.snapshot)
    assert report.sound, report
    assert places(table) == table.addresses


def test_an_index_that_leads_every_key_to_its_row_is_sound(table: IndexedTable) -> None:
    report = check(table.store, table.snapshot)
    assert report.sound
    assert (report.rows, report.entries, report.duplicates) == (17, 17, 0)
    assert report.examples == ()
    assert places(table) == table.addresses


@pytest.mark.slow
def test_an_index_stays_sound_through_compaction_and_a_merge_of_runs(table: IndexedTable) -> None:
    table.compact()
    table.merge(0, 2)
    assert len(table.manifest.runs) == 1
    assert check(table.store, table.snapshot).sound
    assert places(table) == table.addresses


@pytest.mark.slow
@pytest.mark.parametrize("entries_per_part", [1, 3, 100])
def test_the_ranges_a_check_and_a_rebuild_go_by_change_nothing(
    table: IndexedTable, entries_per_part: int
) -> None:
    table.set_runs(table.run({3: (1, 1), 20: table.addresses[20], 99: table.addresses[5]}))
    whole = check(table.store, table.snapshot)
    parts = check(table.store, table.snapshot, entries_per_part=entries_per_part)
    assert replace(parts, examples=()) == replace(whole, examples=())
    ours = rebuild(table.store, table.snapshot, table.entropy, entries_per_part=entries_per_part)
    other = rebuild(table.store, table.snapshot, table.entropy)
    one, two = open_run(table.store, ours), open_run(table.store, other)
    assert all((a == b).all() for a, b in zip(one.entries(0, 99), two.entries(0, 99), strict=True))


def test_a_deleted_run_is_reported_and_healed(table: IndexedTable) -> None:
    lost = table.manifest.runs[0]
    path_of(table, lost).unlink()
    report = check(table.store, table.snapshot)
    assert not report.sound
    assert [path for path, _ in report.damaged] == [lost.file.path]
    assert (report.missing, report.wrong, report.stray) == (14, 0, 0)
    with pytest.raises(MissingFileError):
        places(table)
    heal(table)


def test_a_run_cut_off_is_reported_never_used_and_healed(table: IndexedTable) -> None:
    lost = table.manifest.runs[1]
    file = path_of(table, lost)
    file.write_bytes(file.read_bytes()[:-64])
    report = check(table.store, table.snapshot)
    assert [path for path, _ in report.damaged] == [lost.file.path]
    assert report.missing == 3
    with pytest.raises(CorruptFileError):
        places(table)
    heal(table)


@pytest.mark.slow
def test_a_flipped_bit_anywhere_in_a_run_is_refused_when_it_is_opened(table: IndexedTable) -> None:
    ref = table.manifest.runs[1]
    file = path_of(table, ref)
    written = file.read_bytes()
    for at in range(len(written)):
        flipped = bytearray(written)
        flipped[at] ^= 1 << (at % 8)
        file.write_bytes(flipped)
        with pytest.raises(CorruptFileError):
            open_run(table.store, ref)
    assert not check(table.store, table.snapshot).sound
    heal(table)


def test_a_run_put_in_the_place_of_another_is_refused(table: IndexedTable) -> None:
    first, second = (path_of(table, ref) for ref in table.manifest.runs)
    ours, theirs = first.read_bytes(), second.read_bytes()
    first.write_bytes(theirs)
    second.write_bytes(ours)
    report = check(table.store, table.snapshot)
    assert len(report.damaged) == 2
    assert report.missing == report.rows == 17
    heal(table)


def test_a_run_written_wrongly_is_reported_though_its_checksum_is_right(
    table: IndexedTable,
) -> None:
    ref = table.manifest.runs[1]
    data = bytearray((table.store.root / ref.file.path).read_bytes())
    data[64:88], data[88:112] = data[88:112], data[64:88]
    path = run_path(table.entropy)
    table.store.put_new(path, bytes(data))
    wrong = RunRef(FileRef(path, len(data), checksum(bytes(data))), ref.entries)
    table.set_runs(table.manifest.runs[0], wrong)
    assert [path for path, _ in check(table.store, table.snapshot).damaged] == [path]
    heal(table)


def test_an_index_rolled_back_misses_the_keys_since(table: IndexedTable) -> None:
    table.set_runs(table.manifest.runs[0])
    report = check(table.store, table.snapshot)
    assert (report.missing, report.wrong, report.stray, report.damaged) == (3, 0, 0, ())
    assert all(example.startswith("missing: key=") for example in report.examples)
    heal(table)


def test_an_index_without_runs_misses_every_key(table: IndexedTable) -> None:
    table.set_runs()
    assert check(table.store, table.snapshot).missing == 17
    heal(table)


def test_swapped_entries_are_wrong(table: IndexedTable) -> None:
    swapped = {3: table.addresses[4], 4: table.addresses[3]}
    table.set_runs(*table.manifest.runs, table.run(swapped))
    report = check(table.store, table.snapshot)
    assert (report.missing, report.wrong, report.stray) == (0, 2, 0)
    heal(table)


def test_an_entry_of_a_key_that_no_row_has_is_a_stray(table: IndexedTable) -> None:
    group, at = table.addresses[13]
    table.set_runs(*table.manifest.runs, table.run({98: (group, at), 99: (group, at + 1)}))
    report = check(table.store, table.snapshot)
    assert (report.missing, report.wrong, report.stray) == (0, 0, 2)
    heal(table)


def test_an_entry_of_a_dead_group_is_no_stray_but_hides_what_is_older(table: IndexedTable) -> None:
    table.set_runs(*table.manifest.runs, table.run({98: (1, 0)}))
    assert check(table.store, table.snapshot).sound
    table.set_runs(*table.manifest.runs, table.run({5: (1, 0)}))
    report = check(table.store, table.snapshot)
    assert (report.missing, report.wrong, report.stray) == (1, 0, 0)
    heal(table)


@pytest.mark.slow
def test_if_two_rows_have_one_key_the_highest_position_wins(table: IndexedTable) -> None:
    old = table.addresses[3]
    table.insert([row(3)])
    new = table.addresses[3]
    report = check(table.store, table.snapshot)
    assert report.duplicates == 1
    assert report.sound
    assert old != new
    heal(table)


@pytest.mark.slow
def test_a_waiting_change_counts_for_which_row_wins(table: IndexedTable) -> None:
    old = table.addresses[7]
    table.insert([row(7)])
    new = table.addresses[7]
    table.addresses[7] = old
    table.change([(Op.UPDATE, row(7))])
    report = check(table.store, table.snapshot)
    assert (report.duplicates, report.wrong) == (1, 1)
    heal(table)
    table.addresses[7] = new
    table.change([(Op.UPDATE, row(7))])
    assert check(table.store, table.snapshot).wrong == 1
    heal(table)
    table.compact()
    heal(table)


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [True, False])
def test_if_two_rows_have_one_position_the_live_one_wins(
    table: IndexedTable, compacted: bool
) -> None:
    """As a row leaves its place when it moves to another partition."""
    moves = []
    for key in range(4, 10):
        old = table.addresses[key]
        table.change([(Op.DELETE, row(key))])
        if compacted:
            table.compact()
        table._next -= 1
        table.insert([row(key)])
        moves.append(table.addresses[key] > old)
    # Whichever of the two files is read first.
    assert set(moves) == {True, False}
    heal(table)


def test_rows_of_a_file_of_several_segments_have_the_address_of_their_segment(
    table: IndexedTable,
) -> None:
    """As a merge of files leaves it: the segments of two files one after the other."""
    path, file = next((p, f) for p, f in table.manifest.files.items() if f.rows == 10)
    group = file.segments[0].group
    parts = (replace(file.segments[0], rows=4), replace(file.segments[0], group=5, rows=6))
    done = replace(file, segments=parts)
    manifest = replace(table.manifest, files={**table.manifest.files, path: done}, deltas=())
    snapshot = replace(table.snapshot, manifest=manifest)
    assert check(table.store, snapshot).wrong == 6
    run = open_run(table.store, rebuild(table.store, snapshot, table.entropy))
    entries = run.entries(0, len(run))
    found = set(zip(entries.group.tolist(), entries.row.tolist(), strict=True))
    assert {(group, at) for at in range(4)} | {(5, at) for at in range(6)} <= found


def test_a_damaged_base_file_ends_a_check_and_a_rebuild(table: IndexedTable) -> None:
    path = next(iter(table.manifest.files))
    file = table.store.root / path
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(CorruptFileError):
        check(table.store, table.snapshot)
    with pytest.raises(CorruptFileError):
        rebuild(table.store, table.snapshot, table.entropy)
    assert len(list(table.store.list("_lakesplice/index/"))) == 2


def test_an_empty_table_has_a_sound_index(tmp_path: Path) -> None:
    made = IndexedTable(tmp_path, TableSchema())
    assert check(made.store, made.snapshot).sound
    assert rebuild(made.store, made.snapshot, made.entropy).entries == 0


def test_a_cache_opens_and_verifies_a_run_once(table: IndexedTable) -> None:
    cache = RunCache()
    opened = cache.open_runs(table.store, table.manifest.runs)
    for ref in table.manifest.runs:
        path_of(table, ref).unlink()
    again = cache.open_runs(table.store, table.manifest.runs)
    assert all(one is other for one, other in zip(opened, again, strict=True))
    assert places(table, cache) == table.addresses


@pytest.mark.parametrize("bounds", [{"bytes_max": 0}, {"runs_max": 1}])
def test_a_cache_drops_the_least_recently_used_entry(
    table: IndexedTable, bounds: dict[str, int]
) -> None:
    cache = RunCache(**bounds)
    first, second = table.manifest.runs
    assert len(cache.open_runs(table.store, (first, second))) == 2
    cache.open_runs(table.store, (second,))
    path_of(table, first).unlink()
    path_of(table, second).unlink()
    cache.open_runs(table.store, (second,))
    with pytest.raises(MissingFileError):
        cache.open_runs(table.store, (first,))


def test_a_run_with_another_number_of_entries_than_recorded_is_refused(
    table: IndexedTable,
) -> None:
    ref = replace(table.manifest.runs[0], entries=3)
    with pytest.raises(CorruptFileError, match="entries"):
        open_run(table.store, ref)


def test_merging_what_is_damaged_leaves_nothing(table: IndexedTable) -> None:
    file = path_of(table, table.manifest.runs[0])
    file.write_bytes(b"x" + file.read_bytes()[1:])
    with pytest.raises(CorruptFileError):
        write_merged(table.store, table.manifest.runs, RunCache(), table.entropy)
    assert len(list(table.store.list("_lakesplice/index/"))) == 2
