"""Which of a topic's records each retained version took, and which of them are to be read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lakesplice.table.protocol.offsets import next_offsets
from lakesplice.table.reading.changes import Version

Ranges = Mapping[int, tuple[int, int]]
INGEST = "INGEST"


@dataclass(frozen=True)
class RecordRange:
    """Records of a topic that one version took, per partition the first offset and one after the
    last. `before` is the version that they met. `taken_in` is None for records that were not taken
    yet, and for those taken `before` the oldest version that is known, of which `is_lost` is true.
    """

    topic: str
    offsets: Ranges
    before: Version
    taken_in: Version | None = None
    is_lost: bool = False

    @property
    def records(self) -> int:
        """How many offsets these are."""
        return sum(end - start for start, end in self.offsets.values())


@dataclass(frozen=True)
class ChosenRanges:
    """What is read again, oldest first, and in words what isn't."""

    ranges: tuple[RecordRange, ...]
    left_out: tuple[str, ...]


def choose_ranges(
    versions: Sequence[Version],
    topic: str,
    earliest: Mapping[int, int],
    ends: Mapping[int, int],
    records_max: int,
) -> ChosenRanges:
    """Choose at most so many records, the newest first; those that one version took all or none.

    `versions` are the retained ones, `earliest` and `ends` what the topic still has.
    """
    left, chosen, left_out = records_max, list[RecordRange](), list[str]()
    for found in _newest_first(versions, topic, earliest, ends):
        gone = sum(max(0, earliest.get(at, 0) - start) for at, (start, _) in found.offsets.items())
        whole = _there(found, earliest)
        if gone and found.taken_in is not None:
            left_out.append(f"{_named(found)}: the topic has lost {gone} of its records")
        elif whole.records <= left:
            chosen.append(whole)
            left -= whole.records
        elif found.taken_in is None:
            part = _tail(whole, left)
            left_out.append(
                f"{_named(found)}: {whole.records - part.records} records were not read"
            )
            chosen.append(part)
            left -= part.records
        else:
            left_out.append(f"{_named(found)}: its {whole.records} records were not read")
    ranges = tuple(one for one in reversed(chosen) if one.records)
    return ChosenRanges(ranges, tuple(reversed(left_out)))


def adjoining(ranges: Sequence[RecordRange]) -> Iterator[tuple[Ranges, list[RecordRange]]]:
    """Yield the ranges in groups of which each goes on where the one before ends, and what to read
    for a group: one reading of a topic costs as much as some hundred thousand records.
    """
    group, whole = list[RecordRange](), dict[int, tuple[int, int]]()
    for one in ranges:
        if not all(whole[at][1] == start for at, (start, _) in one.offsets.items() if at in whole):
            yield whole, group
            group, whole = [], {}
        group.append(one)
        for at, (start, end) in one.offsets.items():
            whole[at] = (whole.get(at, (start, end))[0], end)
    if group:
        yield whole, group


def _newest_first(
    versions: Sequence[Version], topic: str, earliest: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[RecordRange]:
    oldest, newest = versions[0], versions[-1]
    stood = _stood(newest, topic)
    unread = {at: (stood.get(at, 0), end) for at, end in ends.items() if end > stood.get(at, 0)}
    if unread:
        yield RecordRange(topic, unread, newest)
    pairs = list(pairwise(versions))
    for before, now in reversed(pairs):
        if now.operation == INGEST and topic in before.manifest.sources:
            starts, until = _stood(before, topic), _stood(now, topic)
            taken = {
                at: (starts.get(at, 0), end) for at, end in until.items() if end > starts.get(at, 0)
            }
            if taken:
                yield RecordRange(topic, taken, before, now)
    lost = {at: (earliest.get(at, 0), end) for at, end in _stood(oldest, topic).items()}
    lost = {at: (start, end) for at, (start, end) in lost.items() if end > start}
    if lost:
        yield RecordRange(topic, lost, oldest, is_lost=True)


def _stood(version: Version, topic: str) -> Mapping[int, int]:
    source = version.manifest.sources.get(topic)
    return {} if source is None else next_offsets(source)


def _there(found: RecordRange, earliest: Mapping[int, int]) -> RecordRange:
    offsets = {
        at: (max(start, earliest.get(at, 0)), end) for at, (start, end) in found.offsets.items()
    }
    offsets = {at: (start, end) for at, (start, end) in offsets.items() if end > start}
    return RecordRange(found.topic, offsets, found.before, found.taken_in, found.is_lost)


def _tail(found: RecordRange, records: int) -> RecordRange:
    """Return the last records of a range; of those that aren't read yet, the first ones."""
    share = records // max(1, len(found.offsets))
    offsets = {
        at: (max(start, end - share), end) if found.is_lost else (start, min(end, start + share))
        for at, (start, end) in found.offsets.items()
    }
    offsets = {at: (start, end) for at, (start, end) in offsets.items() if end > start}
    return RecordRange(found.topic, offsets, found.before, found.taken_in, found.is_lost)


def _named(found: RecordRange) -> str:
    if found.taken_in is not None:
        return f"version {found.taken_in.number}"
    return f"before version {found.before.number}" if found.is_lost else "not taken yet"
