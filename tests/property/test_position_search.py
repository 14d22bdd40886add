"""A place of the source's binlog is found in a topic, whatever records are between those with a
position.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import UsageError
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges
from lakesplice.planning.sources.position_search import PlacedRecords, find_offsets

# A partition's records in order: None for one without a position.
RECORDS = st.lists(st.none() | st.integers(0, 30), max_size=60)
READS_MAX = 40


class Topic:
    """Partitions from offset 5 on; a place is a number, before which lower ones are."""

    def __init__(self, partitions: list[list[int | None]], place: int) -> None:
        self.partitions, self.place, self.reads = partitions, place, 0

    @property
    def ranges(self) -> OffsetRanges:
        return {
            at: OffsetRange(Offset(5), Offset(5 + len(records)))
            for at, records in enumerate(self.partitions)
        }

    def probe(self, asked: OffsetRanges) -> Mapping[int, PlacedRecords]:
        self.reads += 1
        assert self.reads < READS_MAX, "the search does not end"
        found = {}
        for at, (start, end) in asked.items():
            first, last = self.ranges[at]
            assert first <= start < end <= last
            placed = [
                (offset, number < self.place)
                for offset, number in enumerate(self.partitions[at], 5)
                if number is not None and start <= offset < end
            ]
            offsets = np.array([offset for offset, _ in placed], np.int64)
            found[at] = PlacedRecords(offsets, np.array([is_ for _, is_ in placed], np.bool_))
        return found


@given(st.lists(RECORDS, min_size=1, max_size=3), st.integers(0, 31), st.integers(1, 8))
def test_all_that_is_not_before_a_place_comes_from_the_found_offset_on(
    partitions: list[list[int | None]], place: int, window: int
) -> None:
    rising = []
    for records in partitions:
        numbers = iter(sorted(number for number in records if number is not None))
        rising.append([None if one is None else next(numbers) for one in records])
    topic = Topic(rising, place)
    if not any(number is not None for records in rising for number in records):
        if any(rising):
            with pytest.raises(UsageError, match="no record of the topic has such a position"):
                find_offsets(topic.ranges, topic.probe, window)
        return
    for at, offset in find_offsets(topic.ranges, topic.probe, window).items():
        before = [n for n in rising[at][: offset - 5] if n is not None]
        after = [n for n in rising[at][offset - 5 :] if n is not None]
        assert all(number < place for number in before)
        assert all(number >= place for number in after)
        if before:
            assert rising[at][offset - 6] is not None, "what can't be placed is read again"


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=4),
    st.integers(0, 41),
    st.integers(1, 8),
)
def test_repeated_records_do_not_hide_a_change(
    count: int, repeats: list[tuple[int, int]], place: int, window: int
) -> None:
    records: list[int | None] = list(range(count))
    for at, back in sorted(repeats, reverse=True):
        end = at % count + 1
        records[end:end] = records[max(0, end - back) : end]
    topic = Topic([records], place)
    offset = find_offsets(topic.ranges, topic.probe, window)[0]
    found = {number for number in records[offset - 5 :] if number is not None}
    assert found >= {number for number in range(count) if number >= place}
