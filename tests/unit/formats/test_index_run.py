from __future__ import annotations

import pytest

from lakesplice.errors import CorruptFileError, UnsupportedError, UsageError
from lakesplice.formats.rowindex import Run, RunEncoder, encode_run
from lakesplice.formats.rowindex.layout import HEADER_BYTES, fence_bits_for
from tests.support.index_entries import entries_of, part_of

KEYS = [(0x1111111111111111, 5), (0x1111111111111111, 9), (0xEEEEEEEEEEEEEEEE, 1)]
PLACES = [(7, 0), (3, 41), (7, 2)]


def listed(run: Run) -> list[tuple[int, ...]]:
    return list(zip(*(a.tolist() for a in run.entries(0, len(run))), strict=True))


SMALL = encode_run(*entries_of(KEYS, PLACES))

# Three entries in two groups: one fence bit, so three fences.
WRITTEN_OUT = (
    b"LKSPRUN1" + bytes(56)
    + b"\x11" * 8 + bytes.fromhex("0500000000000000") + bytes.fromhex("0000000001000000")
    + b"\x11" * 8 + bytes.fromhex("0900000000000000") + bytes.fromhex("2900000000000000")
    + b"\xee" * 8 + bytes.fromhex("0100000000000000") + bytes.fromhex("0200000001000000")
    + bytes(56)
    + bytes.fromhex("00000000 02000000 03000000") + bytes(52)
    + bytes.fromhex("0300000000000000 0700000000000000") + bytes(48)
    + bytes.fromhex("0300000000000000 0200000000000000 01000000") + bytes(36) + b"LKSPRUN1"
)  # fmt: skip


def test_a_run_has_the_bytes_written_in_the_format() -> None:
    assert SMALL == WRITTEN_OUT


def test_a_run_is_read_back_without_a_copy() -> None:
    run = Run.from_buffer(SMALL, "r")
    assert listed(run) == [(*key, *place) for key, place in zip(KEYS, PLACES, strict=True)]
    assert run.high.tolist() == [high for high, _ in KEYS]
    assert run.low.tolist() == [low for _, low in KEYS]
    assert run.group.tolist() == [7, 3, 7]
    assert run.row.tolist() == [0, 41, 2]
    assert not run.words.flags.owndata
    assert not run.words.flags.writeable
    run.verify()


def test_an_empty_run_is_a_run() -> None:
    run = Run.from_buffer(encode_run(*entries_of([], [])), "r")
    assert len(run) == 0
    assert listed(run) == []
    assert run.boundary(0, 4) == run.boundary(16, 4) == 0
    run.verify()


def test_blocks_give_the_same_bytes_as_the_whole_but_for_the_order_of_groups() -> None:
    entries = entries_of(KEYS, [(3, 0), (7, 1), (7, 2)])
    encoder = RunEncoder(3)
    pieces = [encoder.add(part_of(entries, at, at + 1)) for at in range(3)]
    assert b"".join([*pieces, encoder.finish()]) == encode_run(*entries)


def test_entries_must_rise_within_and_across_blocks() -> None:
    for keys in ([KEYS[1], KEYS[0]], [KEYS[0], KEYS[0]], [KEYS[2], KEYS[0]]):
        with pytest.raises(UsageError, match="rise"):
            encode_run(*entries_of(keys, PLACES[:2]))
        encoder = RunEncoder(2)
        encoder.add(entries_of(keys[:1], PLACES[:1]))
        with pytest.raises(UsageError, match="rise"):
            encoder.add(entries_of(keys[1:], PLACES[:1]))


def test_entries_that_a_run_cannot_hold_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        encode_run(*entries_of(KEYS[:1], [(1, 1 << 32)]))
    with pytest.raises(UnsupportedError):
        encode_run(*entries_of(KEYS[:1], [(1, -1)]))
    with pytest.raises(UnsupportedError):
        RunEncoder(1 << 32)
    with pytest.raises(UsageError):
        encode_run(*entries_of(KEYS[:1], [(-1, 0)]))
    with pytest.raises(UsageError):
        RunEncoder(1).add(entries_of(KEYS, PLACES))


def test_a_fence_leaves_one_or_two_entries() -> None:
    assert [fence_bits_for(n) for n in (0, 1, 2, 3, 4, 5, 8, 9, 20_000_000)] == [
        0, 0, 0, 1, 1, 2, 2, 3, 24,
    ]  # fmt: skip


def test_a_run_cut_off_anywhere_is_refused() -> None:
    for size in range(len(SMALL)):
        with pytest.raises(CorruptFileError):
            Run.from_buffer(SMALL[:size], "r")


def test_a_flipped_bit_outside_the_entries_changes_no_entry_unnoticed() -> None:
    """But for a group's number, which may become another one: only the file's checksum tells."""
    true = listed(Run.from_buffer(SMALL, "r"))
    entries, groups = range(HEADER_BYTES, HEADER_BYTES + 24 * len(KEYS)), range(256, 272)
    misread = set()
    for at in sorted(set(range(len(SMALL))) - set(entries)):
        for bit in range(8):
            flipped = bytearray(SMALL)
            flipped[at] ^= 1 << bit
            try:
                run = Run.from_buffer(bytes(flipped), "r")
                run.verify()
                found = listed(run)
            except CorruptFileError:
                continue
            assert [entry[:2] + entry[3:] for entry in found] == [
                entry[:2] + entry[3:] for entry in true
            ]
            if found != true:
                misread.add(at)
    assert misread
    assert misread <= set(groups)


def test_a_wrong_order_or_fence_is_found_by_reading_all_entries() -> None:
    swapped = bytearray(SMALL)
    swapped[64:88], swapped[88:112] = SMALL[88:112], SMALL[64:88]
    moved = bytearray(SMALL)
    moved[64 + 48 + 7] = 0x2E
    for damaged in (swapped, moved):
        run = Run.from_buffer(bytes(damaged), "r")
        with pytest.raises(CorruptFileError):
            run.verify()


def test_an_entry_of_a_group_that_is_not_in_the_table_is_refused_when_read() -> None:
    damaged = bytearray(SMALL)
    damaged[64 + 20] = 2
    run = Run.from_buffer(bytes(damaged), "r")
    with pytest.raises(CorruptFileError, match="no group"):
        run.entries(0, 3)
