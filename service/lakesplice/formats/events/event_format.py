"""The seam: what a format of change events is to the rest of decoding.

A format is a `EventFormat`: a name to set it by, what its events can and can't say, how it is
recognised from others by one payload, and a reader. `records_to_blocks.py` drives the reader: it
shows it the first undecided record (`inspect`), reads all records like it in one go, and lets it
make blocks of row images (`build`). Nothing else knows which formats there are but the list in
`decode.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakesplice.formats.events.json_reading.ledger import Ledger
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import Template, Verdict
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.model.arrays import Integers
from lakesplice.model.choices import FormatName


@dataclass(frozen=True, slots=True)
class FormatCapabilities:
    """What a format's events say, for docs/formats.md: per fact where it comes from, or what is
    done without it.
    """

    position: str
    before: str
    changed: str
    key: str
    types: str
    lacking: str


@dataclass(frozen=True)
class Group:
    """Records that were read as one: like `template`, with keys of the form `key`.

    `records` are their indexes, ascending; `payloads` what was read of each, `keys` their keys as
    bytes and `offsets` their places in the partition, row for row. `notes` are the reading's.
    """

    records: Integers
    payloads: pa.Array
    keys: pa.Array
    offsets: Integers
    template: Template
    key: KeyForm | None
    source: TextSelection
    notes: pa.Array | None = None

    def text(self, row: int) -> bytes:
        """Return what was read of one record: its value behind the template's prefix."""
        text: bytes = self.source.texts[int(self.source.at[row])].as_py()
        return text


@dataclass(frozen=True)
class TextSelection:
    """Some of many texts, by their places."""

    texts: pa.Array
    at: Integers


class KeyForm(Protocol):
    """What like keys start with, and the columns they name in key order."""

    @property
    def prefix(self) -> bytes:
        """The bytes that all of them start with."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The key's columns."""
        ...


class Reader(Protocol):
    """Reads a run of one partition's records; a new one for each run."""

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check; what it says about records like it."""
        ...

    def inspect_key(self, key: bytes | None, template: Template, /) -> KeyForm | Flaw | None:
        """Read one record's key; None if records like it have none that is used."""
        ...

    def build(self, group: Group, ledger: Ledger) -> None:
        """Settle records that were read: changes go into the ledger as blocks.

        Records that have another form than the group's may stay open.
        """
        ...


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One format. `recognises` is asked about a payload that is a JSON object; of no payload do two
    formats say yes. `placeholder` stands in its images for values that the source didn't send.
    `prepare` returns records' values as the reader is to see them, row for row.
    """

    name: FormatName
    knows: FormatCapabilities
    recognises: Callable[[Mapping[str, object]], bool]
    reader: Callable[[DecodeContext], Reader]
    placeholder: bytes | None = None
    prepare: Callable[[pa.Array, DecodeContext], pa.Array] | None = None
