"""Groups of dead letters: by commit, by partition, and by what they are above; and what was read
around them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lakesplice.model.manifest import DeadLetterRef, Manifest
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.late_order import (
    LateChange,
    LateRecords,
    ReadAround,
    narrowed,
    raised,
)
from lakesplice.table.files.dead_letters import DeadLetter

# All dead letters of one commit are in memory.
_BYTES_PER_COMMIT = 64 << 20
_RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


def refs_of(manifest: Manifest, topic: str) -> list[DeadLetterRef]:
    """Return the files that hold a topic's dead letters."""
    return [ref for ref in manifest.dead_letters if ref.topic in ("", topic)]


def commit_shares(
    refs: Sequence[DeadLetterRef],
    groups_of: Callable[[DeadLetterRef], Collection[Hashable]],
    bytes_max: int = _BYTES_PER_COMMIT,
) -> Iterator[frozenset[str]]:
    """Split the files of dead letters into shares that fit into memory, by their paths.

    Dead letters of one group (`planning/sources/late_order.py`) are replayed together, so a share
    is larger than `bytes_max` only if one group is.
    """
    groups = [groups_of(ref) for ref in refs]
    last = {group: at for at, of_file in enumerate(groups) for group in of_file}
    share: list[DeadLetterRef] = []
    end = 0  # the file that has the last dead letter of the share's groups
    for at, ref in enumerate(refs):
        size = sum(one.file.bytes for one in share) + ref.file.bytes
        if share and end < at and size > bytes_max:
            yield frozenset(one.file.path for one in share)
            share = []
        share.append(ref)
        end = max(end, *(last[group] for group in groups[at]), at)
    if share:
        yield frozenset(one.file.path for one in share)


def by_position_above(
    dead_letters: Sequence[DeadLetter],
) -> Iterator[tuple[Position, list[DeadLetter]]]:
    """Group dead letters by the position that they are above: the purge floor rises once the oldest
    are gone.
    """
    places: dict[Position, list[DeadLetter]] = {}
    for letter in dead_letters:
        places.setdefault(letter.above, []).append(letter)
    yield from sorted(places.items())


def by_partition(
    dead_letters: Sequence[DeadLetter],
) -> Iterator[tuple[tuple[str, int], list[DeadLetter]]]:
    """Group dead letters by topic and partition."""
    places: dict[tuple[str, int], list[DeadLetter]] = {}
    for letter in dead_letters:
        places.setdefault((letter.topic, letter.partition), []).append(letter)
    yield from sorted(places.items())


def records_of(dead_letters: Sequence[DeadLetter]) -> pa.RecordBatch:
    """Return the records as the intake line takes them."""
    rows = [{name: getattr(letter, name) for name in _RECORDS.names} for letter in dead_letters]
    return pa.RecordBatch.from_pylist(rows, schema=_RECORDS)


def late_records(
    dead_letters: Sequence[DeadLetter], source: SourceState, partition: int
) -> LateRecords:
    """Return what is known of the dead letters of a partition that are replayed."""
    around = {letter.offset: letter.around for letter in dead_letters}
    state = source.partitions.get(partition)
    known = {int(offset): _as_read(one, state) for offset, one in around.items() if one is not None}
    return LateRecords(known, {} if state is None else {None: replace(state, met_until=0)})


def _as_read(around: ReadAround, state: PartitionState | None) -> ReadAround:
    """Whatever is read or applied next closes the last group. If a dead letter were still in it
    although the partition went on, nothing may rise there.
    """
    reached = around.before.position
    if around.behind is not None or (state is not None and state.position == reached):
        return around
    return replace(around, behind=reached)


def left_behind(
    dead_letters: Sequence[DeadLetter], applied: Mapping[int, Sequence[LateChange]]
) -> list[DeadLetter]:
    """Return dead letters that stay, after others were applied, given by partition."""
    return [_narrowed(letter, applied.get(letter.partition, ())) for letter in dead_letters]


def _narrowed(letter: DeadLetter, applied: Sequence[LateChange]) -> DeadLetter:
    around = letter.around
    if around is None or not applied:
        return letter
    return letter.lying(narrowed(letter.offset, around, applied))


def source_after(source: SourceState, applied: Mapping[int, Sequence[LateChange]]) -> SourceState:
    """Return the source after late changes were applied, given by partition."""
    states = dict(source.partitions)
    for partition, changes in applied.items():
        if partition in states:
            states[partition], epochs = raised(states[partition], partition, source.epochs, changes)
            source = replace(source, epochs=epochs)
    return source if states == source.partitions else replace(source, partitions=states)
