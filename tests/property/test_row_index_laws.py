from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.formats.rowindex import Entries, Run, RunEncoder, encode_run
from lakesplice.model.arrays import KeyHashes
from lakesplice.planning.rows import locate as locating
from lakesplice.planning.rows.index_merge import RUNS_MAX, merge_runs, merged_part, plan_merge
from lakesplice.planning.rows.locate import UNKNOWN, locate
from tests.support.index_entries import entries_of, part_of

TOP = (1 << 64) - 1
# Few values, so that keys meet and hashes seem to collide; ends, so that nothing falls off.
HIGHS = st.sampled_from([0, 1, 2, 1 << 32, 1 << 63, (1 << 63) + 1, TOP - 1, TOP]) | st.integers(
    0, TOP
)
KEY = st.tuples(HIGHS, st.integers(0, 3) | st.sampled_from([TOP]))
PLACE = st.tuples(st.integers(0, 5), st.integers(0, (1 << 32) - 1))
RUN = st.dictionaries(KEY, PLACE, max_size=30)
INDEX = st.lists(RUN, max_size=5)
LIVE = st.sets(st.integers(0, 5))

Key = tuple[int, int]
Place = tuple[int, int]


def sorted_entries(held: dict[Key, Place]) -> Entries:
    keys = sorted(held)
    return entries_of(keys, [held[key] for key in keys])


def run_of(held: dict[Key, Place]) -> Run:
    run = Run.from_buffer(encode_run(*sorted_entries(held)), "r")
    run.verify()
    return run


def listed(entries: Entries) -> list[tuple[int, ...]]:
    return list(zip(*(a.tolist() for a in entries), strict=True))


def located(runs: Sequence[Run], keys: Sequence[Key], live: set[int]) -> list[Place]:
    high, low = (np.array([key[at] for key in keys], np.uint64) for at in (0, 1))
    group, row = locate(runs, KeyHashes(high, low), np.array(sorted(live), np.int64))
    return list(zip(group.tolist(), row.tolist(), strict=True))


def replayed(index: Sequence[dict[Key, Place]]) -> dict[Key, Place]:
    newest: dict[Key, Place] = {}
    for run in index:
        newest |= run
    return newest


@given(INDEX, st.lists(KEY, max_size=40), LIVE)
def test_the_newest_run_that_holds_a_key_decides_and_a_dead_group_means_unknown(
    index: list[dict[Key, Place]], others: list[Key], live: set[int]
) -> None:
    newest = replayed(index)
    keys = [*newest, *others]
    expected = [
        newest[key] if key in newest and newest[key][0] in live else (UNKNOWN, UNKNOWN)
        for key in keys
    ]
    assert located([run_of(run) for run in index], keys, live) == expected


@given(RUN, st.integers(1, 3))
def test_the_size_of_a_block_of_keys_changes_nothing(held: dict[Key, Place], size: int) -> None:
    keys = sorted(held)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locating, "KEYS_PER_BLOCK", size)
        assert located([run_of(held)], keys, set(range(6))) == [held[key] for key in keys]


def test_random_hashes_are_all_found_and_no_others() -> None:
    draw = np.random.default_rng(7)
    hashes = np.unique(draw.integers(0, TOP, (30_000, 2), np.uint64, endpoint=True), axis=0)
    high, low = hashes[:, 0].copy(), hashes[:, 1].copy()
    half = np.arange(0, len(high), 2)
    run = Run.from_buffer(encode_run(high[half], low[half], half % 9, half), "r")
    group, row = locate([run], KeyHashes(high, low), np.arange(9))
    assert (row[half] == half).all()
    assert (group[half] == half % 9).all()
    assert (row[1::2] == UNKNOWN).all()
    # The same `high` with another `low` is another key.
    assert (locate([run], KeyHashes(high, low ^ np.uint64(1)), np.arange(9)).group == UNKNOWN).all()


@given(INDEX, st.data())
def test_merging_any_neighbours_changes_no_lookup(
    index: list[dict[Key, Place]], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(index)))
    stop = data.draw(st.integers(start, len(index)))
    runs = [run_of(run) for run in index]
    encoder = RunEncoder(sum(len(run) for run in runs))
    pieces = [encoder.add(block) for block in merge_runs(runs[start:stop])]
    merged = Run.from_buffer(b"".join([*pieces, encoder.finish()]), "m")
    merged.verify()
    keys = list(replayed(index))
    live = data.draw(LIVE)
    assert located([*runs[:start], merged, *runs[stop:]], keys, live) == located(runs, keys, live)


@given(INDEX, st.integers(0, 6))
def test_parts_of_a_merge_put_together_are_the_whole(
    index: list[dict[Key, Place]], bits: int
) -> None:
    runs = [run_of(run) for run in index]
    parts = [listed(merged_part(runs, part, bits)) for part in range(1 << bits)]
    assert [entry for part in parts for entry in part] == listed(sorted_entries(replayed(index)))


@given(RUN, st.integers(1, 4))
def test_a_run_written_in_blocks_reads_as_it_was(held: dict[Key, Place], size: int) -> None:
    entries = sorted_entries(held)
    encoder = RunEncoder(len(held) + 10)
    blocks = range(0, len(held), size)
    pieces = [encoder.add(part_of(entries, at, at + size)) for at in blocks]
    run = Run.from_buffer(b"".join([*pieces, encoder.finish()]), "r")
    run.verify()
    assert listed(run.entries(0, len(run))) == listed(entries)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_a_run_or_a_corrupt_file(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        Run.from_buffer(data, "r")


@given(RUN.filter(bool), st.data())
def test_a_damaged_run_gives_entries_or_a_corrupt_file_and_leaves_no_bounds(
    held: dict[Key, Place], data: st.DataObject
) -> None:
    damaged = bytearray(encode_run(*sorted_entries(held)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    try:
        run = Run.from_buffer(bytes(damaged), "r")
        located([run], sorted(held), set(range(6)))
        listed(merged_part([run], 1, 1))
        run.verify()
    except CorruptFileError:
        pass


@given(st.lists(st.integers(1, 10**6), max_size=40), st.integers(2, 12))
def test_merging_as_planned_ends_with_fewer_runs_than_the_limit(
    entries: list[int], runs_max: int
) -> None:
    sizes = list(entries)
    while (chosen := plan_merge(sizes, runs_max)) is not None:
        assert len(chosen) >= 2
        assert 0 <= chosen.start < chosen.stop == len(sizes)
        sizes[chosen.start : chosen.stop] = [sum(sizes[chosen.start : chosen.stop])]
    assert len(sizes) < runs_max
    assert sum(sizes) == sum(entries)


@pytest.mark.parametrize("first", [0, 20_000_000])
def test_a_key_is_rewritten_a_few_times_over_thousands_of_batches(first: int) -> None:
    sizes, written, total = [first] if first else [], 0, first
    for _ in range(5_000):
        sizes.append(1_000)
        total += 1_000
        while (chosen := plan_merge(sizes)) is not None:
            merged = sum(sizes[chosen.start : chosen.stop])
            sizes[chosen.start : chosen.stop] = [merged]
            written += merged
        assert len(sizes) < RUNS_MAX
    assert written < 8 * total
