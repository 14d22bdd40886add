"""Groups of dead letters: by commit, by partition, and by what they are above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakesplice.model.manifest import DeadLetterRef, Manifest
from lakesplice.model.position import Position
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


def commit_shares(refs: Sequence[DeadLetterRef]) -> Iterator[frozenset[str]]:
    """Split the files of dead letters into shares that fit into memory."""
    share: set[str] = set()
    size = 0
    for ref in refs:
        if share and size + ref.file.bytes > _BYTES_PER_COMMIT:
            yield frozenset(share)
            share, size = set(), 0
        share.add(ref.file.path)
        size += ref.file.bytes
    if share:
        yield frozenset(share)


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
