"""GTIDs of a partition's rows: the stream of each, and its number there.

Within a stream numbers only rise. A stream is a MariaDB domain, or a MySQL server's UUID, with its
tag if there is one. These forms are read:

    domain-server-number     MariaDB; the server may differ between transactions
    uuid:number              MySQL
    uuid:tag:number          MySQL, tagged
    uuid:1-5:8,uuid:1-3      a set: everything executed up to the row, as some sources send it
    0-1-5,1-2-7              the same for MariaDB: the newest of each domain

A set counts as the first of its streams that is above what was met before the row; if there is
none, everything in it was met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Mask

_MARIADB_PARTS = 2  # behind the domain
_DIGITS_MAX = 18  # below 2^63


@dataclass(frozen=True, slots=True)
class GtidStreams:
    """Per row the stream of its GTID, as an index into `names` or -1 for none, and its number.

    `from_sets` has further numbers that sets contain.
    """

    names: tuple[str, ...]
    stream: Integers
    number: Integers
    from_sets: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, gtid: pa.StringArray, seen: Mapping[str, int]) -> GtidStreams:
        """Read the rows' GTIDs; `seen` is the highest number per stream before the first row."""
        alike = _numbers_of_one_stream(gtid)
        if alike is not None:
            name, numbers = alike
            return cls((name,), np.zeros(len(gtid), np.int64), numbers)
        encoded = gtid.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        rows = encoded.indices.fill_null(len(texts)).to_numpy()
        read = [_read(text) for text in texts]
        singles = zip(read, texts, strict=True)
        if any(found is None and read_gtid_set(text) for found, text in singles):
            return _of_sets([*texts, ""], rows, seen)
        return _of_pairs([*read, None], rows)

    def between(self, start: int, stop: int) -> GtidStreams:
        """Return those of the rows from `start` up to `stop`; they must not be from sets."""
        return GtidStreams(self.names, self.stream[start:stop], self.number[start:stop])

    def highest(self, seen: Mapping[str, int]) -> dict[str, int]:
        """Return the highest number per stream, of `seen` and of the rows."""
        met = {
            name: int(self.number[self.stream == at].max())
            for at, name in enumerate(self.names)
            if np.any(self.stream == at)
        }
        return higher_numbers(higher_numbers(seen, self.from_sets), met)

    def highest_before_each(
        self, places: Sequence[int], seen: Mapping[str, int]
    ) -> list[dict[str, int]]:
        """Return the same of `seen` and the rows before each of some, whose numbers are above 0;
        they must not be from sets.
        """
        so_far = {
            name: np.maximum.accumulate(np.where(self.stream == at, self.number, -1))
            for at, name in enumerate(self.names)
        }
        before = [{name: int(highest[at - 1]) for name, highest in so_far.items()} for at in places]
        return [
            higher_numbers(seen, {name: number for name, number in found.items() if number >= 0})
            for found in before
        ]

    def met_before(self, asked: Mask, seen: Mapping[str, int]) -> Mask:
        """Mark the rows asked for whose GTID isn't above the highest number before them."""
        found = np.zeros(len(asked), dtype=np.bool_)
        # There are few streams: the servers or domains that ever wrote to the source.
        for at in np.unique(self.stream[asked]):
            if at < 0:
                continue
            rows = np.flatnonzero(self.stream == at)
            numbers = self.number[rows]
            least = seen.get(self.names[at], -1)
            before = np.maximum.accumulate(np.concatenate(([least], numbers)))[:-1]
            found[rows] = numbers <= before
        return found

    def at(self, row: int) -> tuple[str, int] | None:
        """Return a row's stream and number; None if it has no GTID that can be read."""
        stream = int(self.stream[row])
        return None if stream < 0 else (self.names[stream], int(self.number[row]))


def read_gtid_set(text: str) -> dict[str, int] | None:
    """Return a set's highest number per stream; None if a part of it can't be read."""
    highest: dict[str, int] = {}
    for part in text.replace("\n", "").split(","):
        single = _read(part.strip())
        found = {single[0]: single[1]} if single else _read_intervals(part.strip())
        if not found:
            return None
        highest = higher_numbers(highest, found)
    return highest


def higher_numbers(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return per stream the higher number of the two."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in sorted({*one, *other})}


def _of_pairs(read: list[tuple[str, int] | None], rows: Integers) -> GtidStreams:
    names = tuple(sorted({found[0] for found in read if found}))
    place = {name: at for at, name in enumerate(names)}
    streams = np.array([place[found[0]] if found else -1 for found in read], np.int64)
    numbers = np.array([found[1] if found else -1 for found in read], np.int64)
    return GtidStreams(names, streams[rows], numbers[rows])


def _of_sets(texts: list[str], rows: Integers, seen: Mapping[str, int]) -> GtidStreams:
    """Give each run of rows with one set the stream that the set advanced."""
    sets = [read_gtid_set(text) for text in texts]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    chosen: list[tuple[str, int] | None] = []
    met = dict(seen)
    for at in rows[starts].tolist():
        found = sets[at] or {}
        new = [name for name, number in found.items() if number > met.get(name, -1)]
        name = new[0] if new else next(iter(found), None)
        chosen.append(None if name is None else (name, found[name]))
        met = higher_numbers(met, found)
    lengths = np.diff(np.append(starts, len(rows)))
    streams = _of_pairs(chosen, np.repeat(np.arange(len(starts)), lengths))
    return GtidStreams(streams.names, streams.stream, streams.number, met)


def _read(gtid: str) -> tuple[str, int] | None:
    """Return a single GTID's stream and number."""
    source, *rest = gtid.split(":", 2)
    if rest:
        stream, number = ":".join((source, *rest[:-1])), rest[-1]
    else:
        stream, *rest = gtid.split("-", 2)
        number = rest[-1] if len(rest) == _MARIADB_PARTS else ""
    return (stream, int(number)) if _is_number(number) else None


def _read_intervals(part: str) -> dict[str, int] | None:
    """Read `uuid:1-5:8:tag:1-2`: intervals; those after a tag belong to the tag."""
    uuid, *rest = part.split(":")
    stream, highest = uuid, dict[str, int]()
    for piece in rest:
        ends = piece.split("-")
        if len(ends) <= 2 and all(map(_is_number, ends)):  # first and last
            highest = higher_numbers(highest, {stream: int(ends[-1])})
        elif piece.isidentifier():
            stream = f"{uuid}:{piece}"
        else:
            return None
    return highest or None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


def _numbers_of_one_stream(gtid: pa.StringArray) -> tuple[str, Integers] | None:
    """Return the stream and each row's number if all rows have one stream. Usually they have, and
    then no row has to be read by itself.
    """
    if not len(gtid) or gtid.null_count:
        return None
    first = gtid[0].as_py()
    read = _read(first)
    if read is None:
        return None
    prefix = first.rstrip("0123456789")
    if not pc.all(pc.starts_with(gtid, prefix)).as_py():
        return None
    digits = pc.utf8_slice_codeunits(gtid, len(prefix))
    longest = pc.max(pc.utf8_length(digits)).as_py()
    if longest > _DIGITS_MAX or not pc.all(pc.match_substring_regex(digits, "^[0-9]+$")).as_py():
        return None
    return read[0], digits.cast(pa.int64()).to_numpy()
