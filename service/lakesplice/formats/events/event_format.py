"""The interface between a format of change events and the rest of decoding.

A format is an `EventFormat`: its name in the configuration, the facts that its events contain, the
function that recognises one of its payloads, and a reader. `records_to_blocks.py` calls the reader:
it passes the first open record (`inspect`), reads all records like it at once, and lets the reader
make blocks of row images (`build`). Only the list in `decode.py` names all formats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import Template, Verdict
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.model.arrays import Integers
from lakesplice.model.choices import FormatName


@dataclass(frozen=True, slots=True)
class FormatCapabilities:
    """The facts that a format's events contain, for docs/formats.md: for each fact its source, or
    what is done without it.
    """

    position: str
    before: str
    changed: str
    key: str
    types: str
    lacking: str


@dataclass(frozen=True)
class Group:
    """Records that were read together: they are like `template` and have keys of the form `key`.

    `records` are their indexes, ascending. `payloads` (the values that were read), `keys` (bytes)
    and `offsets` (in the partition) have one row for each of them. `notes` are those of `Reading`.
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
        """Return the text of one record that was read: its value after the template's prefix."""
        text: bytes = self.source.texts[int(self.source.at[row])].as_py()
        return text


@dataclass(frozen=True)
class TextSelection:
    """A selection of many texts, by their indexes."""

    texts: pa.Array
    at: Integers


class KeyForm(Protocol):
    """The bytes with which similar keys start, and the columns that they name, in key order."""

    @property
    def prefix(self) -> bytes:
        """The bytes with which all of them start."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The key's columns."""
        ...


class Reader(Protocol):
    """Reads consecutive records of one partition; there is a new reader for each run of records."""

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check; return how to read records like it, or a verdict."""
        ...

    def inspect_key(self, key: bytes | None, template: Template, /) -> KeyForm | Flaw | None:
        """Read one record's key; None if keys of such records aren't used."""
        ...

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Settle records that were read: add changes to the ledger as blocks.

        Records whose form differs from the group's may remain open.
        """
        ...


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One format. `recognises` is called with a payload that is a JSON object; at most one format
    returns True for a payload. `placeholder` is the text in row images for values that the source
    didn't send. `prepare` converts records' values before the reader sees them, row by row.
    """

    name: FormatName
    knows: FormatCapabilities
    recognises: Callable[[Mapping[str, object]], bool]
    reader: Callable[[DecodeContext], Reader]
    placeholder: bytes | None = None
    prepare: Callable[[pa.Array, DecodeContext], pa.Array] | None = None
