"""A table's dead letters: written, read, and listed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.dead_letters import (
    DEAD_LETTER_SCHEMA,
    decode_dead_letters,
    encode_dead_letters,
)
from lakesplice.formats.manifests.partition import partition_in, partition_out
from lakesplice.model.manifest import DeadLetterRef
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, PartitionOffset
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.sources.late_order import ReadAround
from lakesplice.table.files.whole_files import put_file, read_file
from lakesplice.table.protocol import layout
from lakesplice.table.protocol.ports import Entropy, Store

__all__ = [
    "DEAD_LETTER_SCHEMA",
    "DeadLetter",
    "DeadLetterSelection",
    "dead_letters_of",
    "groups_in",
    "headers_json",
    "place_columns",
    "read_dead_letters",
    "table_of",
    "write_dead_letters",
]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that couldn't be decoded, byte for byte, and the reason.

    Times are in milliseconds since 1970; `timestamp` is the record's own. `headers` is JSON, an
    array of names with values in Base64. `attempts` counts the replays that failed. The record's
    position is above `above`, as the manifest has it for the file. `state_before` and
    `behind` are what was read around the record, as the file has it.
    """

    topic: str
    partition: int
    offset: Offset
    timestamp: EpochMs
    key: bytes | None
    value: bytes | None
    reason: str
    detail: str
    headers: str
    first_seen: EpochMs
    last_seen: EpochMs
    attempts: int
    state_before: str = ""
    behind_file: int = BEFORE_ALL.file
    behind_offset: int = BEFORE_ALL.offset
    above: Position = BEFORE_ALL

    @property
    def is_withheld(self) -> bool:
        """Whether the dead letter lacks the record's content, since the table has masks."""
        return self.value is None

    @property
    def place(self) -> tuple[str, int, Offset]:
        """The place of the record: topic, partition, offset."""
        return self.topic, self.partition, self.offset

    @property
    def around(self) -> ReadAround | None:
        """What was read around the record; None if that isn't known."""
        if not self.state_before:
            return None
        behind = Position(self.behind_file, self.behind_offset)
        before = partition_in(json.loads(self.state_before))
        return ReadAround(before, None if behind == BEFORE_ALL else behind)

    def with_surroundings(self, around: ReadAround) -> DeadLetter:
        """Return the dead letter with what was read before and behind its record."""
        return replace(self, **place_columns(around))


@dataclass(frozen=True, slots=True)
class DeadLetterSelection:
    """Which dead letters are chosen: those at the places (partition, offset), with one of the
    reasons and of the topic. An empty field chooses all.
    """

    places: frozenset[PartitionOffset] = frozenset()
    reasons: frozenset[str] = frozenset()
    topic: str = ""

    def holds(self, letter: DeadLetter) -> bool:
        """Whether the dead letter is chosen."""
        at = PartitionOffset(letter.partition, letter.offset)
        return (
            (not self.places or at in self.places)
            and (not self.reasons or letter.reason in self.reasons)
            and self.topic in ("", letter.topic)
        )


def write_dead_letters(store: Store, letters: pa.Table, entropy: Entropy) -> DeadLetterRef:
    """Write dead letters, in DEAD_LETTER_SCHEMA, to a new file; it is durable when this returns."""
    path = layout.dead_letter_path(entropy)
    file = put_file(store, path, encode_dead_letters(letters))
    return DeadLetterRef(file, letters.num_rows, behind=dict.fromkeys(_last_of(letters)))


def read_dead_letters(store: Store, ref: DeadLetterRef) -> pa.Table:
    """Return the dead letters of one file after its checksum was checked; `CorruptFileError` if
    damaged.
    """
    return decode_dead_letters(read_file(store, ref.file), path=ref.file.path)


def dead_letters_of(store: Store, refs: Iterable[DeadLetterRef]) -> list[DeadLetter]:
    """Return the dead letters of some files, one per record, in the order of their places.

    If a record became a dead letter more than once, since its offsets were read again, its last
    reason counts. Errors as in `read_dead_letters`.
    """
    found: dict[tuple[str, int, Offset], DeadLetter] = {}
    for ref in refs:
        for row in read_dead_letters(store, ref).to_pylist():
            letter = _stamped(row, ref)
            known = found.get(letter.place)
            found[letter.place] = letter if known is None else _merged(known, letter)
    return [found[place] for place in sorted(found)]


def groups_in(store: Store, ref: DeadLetterRef) -> frozenset[tuple[int, Position | None]]:
    """Return the groups of one file's dead letters: partitions, and the position that was read
    behind them (`planning/sources/late_order.py`). Errors as in `read_dead_letters`.
    """
    letters = read_dead_letters(store, ref)
    known = letters.filter(pc.not_equal(letters["state_before"], ""))
    names = ("partition", "behind_file", "behind_offset")
    groups = known.select(names).group_by(list(names)).aggregate([]).to_pylist()
    places = ((row["partition"], Position(*(row[name] for name in names[1:]))) for row in groups)
    return frozenset(
        (partition, ref.behind.get(partition) if behind == BEFORE_ALL else behind)
        for partition, behind in places
    )


def headers_json(headers: Iterable[Mapping[str, Any]]) -> str:
    """Return a record's headers, each with `key` and `value`, in the form that a dead letter
    stores.
    """
    return json.dumps(
        [
            [one["key"], None if one["value"] is None else b64encode(one["value"]).decode()]
            for one in headers
        ]
    )


def table_of(letters: Iterable[DeadLetter]) -> pa.Table:
    """Return dead letters in DEAD_LETTER_SCHEMA."""
    rows = [
        {name: getattr(letter, name) for name in DEAD_LETTER_SCHEMA.names} for letter in letters
    ]
    return pa.Table.from_pylist(rows, schema=DEAD_LETTER_SCHEMA)


def place_columns(around: ReadAround | None) -> dict[str, Any]:
    """Return what was read around a record as a file of dead letters has it."""
    behind = (around.behind if around else None) or BEFORE_ALL
    return {
        "state_before": json.dumps(partition_out(around.before)) if around else "",
        "behind_file": behind.file,
        "behind_offset": behind.offset,
    }


def _last_of(letters: pa.Table) -> list[int]:
    """Return the partitions behind whose last dead letters nothing higher was read."""
    if "state_before" not in letters.column_names:
        return []
    last = pc.and_(pc.not_equal(letters["state_before"], ""), pc.equal(letters["behind_file"], -1))
    return sorted(pc.unique(letters["partition"].filter(last)).to_pylist())


def _stamped(row: dict[str, Any], ref: DeadLetterRef) -> DeadLetter:
    seen = row["last_seen"] or ref.committed_ms
    times = {"first_seen": row["first_seen"] or seen, "last_seen": seen}
    letter = DeadLetter(**{**row, **times}, above=ref.position)
    around, behind = letter.around, ref.behind.get(letter.partition)
    if around is None or around.behind is not None or behind is None:
        return letter
    return letter.with_surroundings(replace(around, behind=behind))


def _merged(one: DeadLetter, other: DeadLetter) -> DeadLetter:
    earlier, later = sorted((one, other), key=lambda letter: letter.last_seen)
    return replace(
        later,
        first_seen=min(earlier.first_seen, later.first_seen),
        attempts=earlier.attempts + later.attempts,
        **place_columns(earlier.around or later.around),
        above=min(earlier.above, later.above),
    )
