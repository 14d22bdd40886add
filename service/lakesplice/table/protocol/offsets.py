"""The offsets of a table's source partitions, as its manifest has them."""

from __future__ import annotations

from collections.abc import Iterable

from lakesplice.model.manifest import Manifest
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.source_state import SourceState


def view_floor(manifest: Manifest, topic: str | None = None) -> dict[int, Offset]:
    """Per partition of a topic the offset below which the read-optimised view has every change.
    Without `topic` the table's only topic is meant.
    """
    source = manifest.source if topic is None else manifest.sources.get(topic)
    if source is None:
        return {}
    floor = {number: state.next_offset for number, state in source.partitions.items()}
    for delta in manifest.deltas_of(source.topic):
        for partition, offset in delta.floor.items():
            floor[partition] = min(offset, floor.get(partition, offset))
    return floor


def gap_names(manifest: Manifest) -> list[str]:
    """Return the gaps of a table's sources for people: `partition:start-end`, after the topic's
    name if there are several. The end is left out if it isn't known.
    """
    return [
        f"{topic} {gap.text}" if manifest.is_merged else gap.text
        for topic, source in manifest.sources.items()
        for gap in source.gaps
    ]


def next_offsets(source: SourceState) -> dict[int, Offset]:
    """Return the next offset of each partition, in the order of the partitions."""
    return {number: state.next_offset for number, state in sorted(source.partitions.items())}


def reached(source: SourceState | None, partitions: Iterable[int]) -> Position:
    """Return a position that each of the partitions has reached."""
    known = {} if source is None else source.partitions
    states = (known.get(number) for number in partitions)
    return min((state.position if state else BEFORE_ALL for state in states), default=BEFORE_ALL)


def offsets_from(source: SourceState | None, starts: Offsets) -> dict[int, Offset]:
    """Return per partition the offset in `starts`, at which a batch began, or else the next
    offset.
    """
    partitions = {} if source is None else source.partitions
    return {number: state.next_offset for number, state in partitions.items()} | dict(starts)
