"""Which records of a topic each retained version read, and which of them are read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges, Offsets
from lakesplice.table.protocol.offsets import next_offsets
from lakesplice.table.reading.versions import Version

INGEST = "INGEST"


@dataclass(frozen=True)
class RecordRange:
    """Records of a topic: per partition the first offset, and the offset after the last.

    `read_by` is the version that read them, `before` the version before it. Records that no version
    has read yet have no `read_by`, and the newest version as `before`. Records that were read
    before the oldest retained version have no `read_by` either; `precedes_history` marks them.
    """

    topic: str
    offsets: OffsetRanges
    before: Version
    read_by: Version | None = None
    precedes_history: bool = False

    @property
    def records(self) -> int:
        """The number of offsets."""
        return sum(each.size for each in self.offsets.values())


@dataclass(frozen=True)
class ChosenRanges:
    """The ranges to read again, oldest first, and in words the records that are left out."""

    ranges: tuple[RecordRange, ...]
    left_out: tuple[str, ...]


def choose_ranges(
    versions: Sequence[Version],
    topic: str,
    earliest: Offsets,
    ends: Offsets,
    records_max: int,
) -> ChosenRanges:
    """Choose at most `records_max` records, the newest first. Of one version all records are
    chosen, or none.

    `versions` are the retained ones. `earliest` and `ends` are the offsets that the topic still
    has.
    """
    remaining, chosen, left_out = records_max, list[RecordRange](), list[str]()
    for record_range in _newest_first(versions, topic, earliest, ends):
        lost = sum(
            max(0, earliest.get(at, start) - start)
            for at, (start, _) in record_range.offsets.items()
        )
        available = _available(record_range, earliest)
        if lost and record_range.read_by is not None:
            left_out.append(
                f"{_description(record_range)}: the topic has lost {lost} of its records"
            )
        elif available.records <= remaining:
            chosen.append(available)
            remaining -= available.records
        elif record_range.read_by is None:
            part = _part_of(available, remaining)
            unread = available.records - part.records
            left_out.append(f"{_description(record_range)}: {unread} records were not read")
            chosen.append(part)
            remaining -= part.records
        else:
            left_out.append(
                f"{_description(record_range)}: its {available.records} records were not read"
            )
    ranges = tuple(one for one in reversed(chosen) if one.records)
    return ChosenRanges(ranges, tuple(reversed(left_out)))


def contiguous_groups(
    ranges: Sequence[RecordRange],
) -> Iterator[tuple[OffsetRanges, list[RecordRange]]]:
    """Group ranges that follow each other without a gap, and yield what to read for each group.

    One reading of a topic costs as much as some hundred thousand records.
    """
    group, whole = list[RecordRange](), dict[int, OffsetRange]()
    for record_range in ranges:
        if not all(
            whole[at].end == start for at, (start, _) in record_range.offsets.items() if at in whole
        ):
            yield whole, group
            group, whole = [], {}
        group.append(record_range)
        for at, (start, end) in record_range.offsets.items():
            whole[at] = OffsetRange(whole[at].start if at in whole else start, end)
    if group:
        yield whole, group


def _newest_first(
    versions: Sequence[Version], topic: str, earliest: Offsets, ends: Offsets
) -> Iterator[RecordRange]:
    oldest, newest = versions[0], versions[-1]
    read_to = _next_offsets(newest, topic)
    if unread := _not_empty(_between(read_to, ends)):
        yield RecordRange(topic, unread, newest)
    pairs = list(pairwise(versions))
    for before, now in reversed(pairs):
        if now.operation == INGEST and topic in before.manifest.sources:
            starts, until = _next_offsets(before, topic), _next_offsets(now, topic)
            if read_here := _not_empty(_between(starts, until)):
                yield RecordRange(topic, read_here, before, now)
    if earlier := _not_empty(_between(earliest, _next_offsets(oldest, topic))):
        yield RecordRange(topic, earlier, oldest, precedes_history=True)


def _next_offsets(version: Version, topic: str) -> Offsets:
    source = version.manifest.sources.get(topic)
    return {} if source is None else next_offsets(source)


def _available(record_range: RecordRange, earliest: Offsets) -> RecordRange:
    offsets = {
        at: OffsetRange(max(start, earliest.get(at, start)), end)
        for at, (start, end) in record_range.offsets.items()
    }
    return replace(record_range, offsets=_not_empty(offsets))


def _part_of(record_range: RecordRange, records: int) -> RecordRange:
    """Return the last records of a range; the first ones if no version has read the range yet."""
    share = records // max(1, len(record_range.offsets))
    offsets = {
        at: OffsetRange(max(start, Offset(end - share)), end)
        if record_range.precedes_history
        else OffsetRange(start, min(end, Offset(start + share)))
        for at, (start, end) in record_range.offsets.items()
    }
    return replace(record_range, offsets=_not_empty(offsets))


def _between(starts: Offsets, ends: Offsets) -> OffsetRanges:
    return {at: OffsetRange(starts.get(at, Offset(0)), end) for at, end in ends.items()}


def _not_empty(offsets: OffsetRanges) -> dict[int, OffsetRange]:
    return {at: each for at, each in offsets.items() if each.size > 0}


def _description(record_range: RecordRange) -> str:
    if record_range.read_by is not None:
        return f"version {record_range.read_by.number}"
    if record_range.precedes_history:
        return f"before version {record_range.before.number}"
    return "not read by the table yet"
