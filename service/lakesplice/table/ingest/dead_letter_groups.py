"""Groups of dead letters: by commit, by partition, and by what they are above; and what was read
around them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from lakesplice.model.manifest import DeadLetterRef, Manifest
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.gaps import narrowed_gaps
from lakesplice.planning.sources.late_order import (
    LateChange,
    LateRecords,
    ReadAround,
    last_reached,
    narrowed,
    raised,
)
from lakesplice.table.files.dead_letters import (
    DeadLetter,
    dead_letters_of,
    table_of,
    write_dead_letters,
)
from lakesplice.table.protocol.ports import Entropy, Store

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
    if state is None:
        return LateRecords(known)
    last = [one.before for one in known.values() if one.behind is None]
    reached, interrupted = last_reached(state, last)
    return LateRecords(known, {None: reached}, interrupted=interrupted)


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


def _narrowed(
    letter: DeadLetter, applied: Sequence[LateChange], lowest: Position | None = None
) -> DeadLetter:
    """`lowest` is what was read behind the last group, which the letter may have already."""
    around = letter.around
    if around is None or not applied:
        return letter
    if lowest is not None and around.behind == lowest:
        around = replace(around, behind=None)
    now = narrowed(letter.offset, around, applied)
    return letter.with_surroundings(replace(now, behind=now.behind or lowest))


def source_after(source: SourceState, applied: Mapping[int, Sequence[LateChange]]) -> SourceState:
    """Return the source after late changes were applied, given by partition."""
    states = dict(source.partitions)
    for partition, changes in applied.items():
        if partition in states:
            states[partition], epochs = raised(states[partition], partition, source.epochs, changes)
            source = replace(source, epochs=epochs)
    gaps = narrowed_gaps(source.gaps, source.topic_id, applied)
    return replace(source, partitions=states, gaps=gaps)


def letters_read_again(
    store: Store, manifest: Manifest, source: SourceState
) -> dict[int, dict[int, ReadAround | None]]:
    """Return what was read around the dead letters of the partitions that are read again, by
    partition and offset. Reads files only if there are such partitions.
    """
    again = {at for at, state in source.partitions.items() if state.met_until > state.next_offset}
    if not again:
        return {}
    found: dict[int, dict[int, ReadAround | None]] = {}
    for letter in dead_letters_of(store, manifest.letters_of(source.topic)):
        if letter.topic == source.topic and letter.partition in again:
            found.setdefault(letter.partition, {})[letter.offset] = letter.around
    return found


def narrowed_files(
    store: Store,
    entropy: Entropy,
    refs: Sequence[DeadLetterRef],
    topic: str,
    applied: Mapping[int, Sequence[LateChange]],
    lowest: Mapping[int, Position] = MappingProxyType({}),
) -> dict[str, DeadLetterRef]:
    """Write those files of dead letters again beside which records were applied, given by
    partition. Return the new files by the paths of the old ones.

    `lowest` is, for new files, the position that was read behind the last records of a partition.
    """
    if not any(applied.values()):
        return {}
    found: dict[str, DeadLetterRef] = {}
    for ref in refs:
        letters = dead_letters_of(store, [ref])
        now = [
            _narrowed(letter, applied.get(letter.partition, ()), lowest.get(letter.partition))
            if letter.topic == topic
            else letter
            for letter in letters
        ]
        if now != letters:
            new = write_dead_letters(store, table_of(now), entropy)
            found[ref.file.path] = replace(ref, file=new.file, rows=new.rows, behind=new.behind)
    return found
