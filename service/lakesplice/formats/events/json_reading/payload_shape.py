"""What the payloads of like records hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyarrow import json as arrow_json

from lakesplice.formats.events.json_reading.null_proof import Evidence, prove_rows
from lakesplice.formats.events.json_reading.strict import Check, check_of
from lakesplice.formats.events.json_reading.texts import parse_options
from lakesplice.formats.events.values.encoding import Cell

Proof = Callable[[pa.Array, pa.Array], Evidence]


@dataclass(frozen=True)
class EventShape:
    """What an event's payload holds: its row images' columns, and the JSON types of all of it.

    `optional` members may be absent, and where one is an object or a list of objects, so may the
    members of these; then `prove` has to know them: unproven are the texts of which it isn't proven
    that every null read in another member was written.
    """

    cells: tuple[Cell, ...]
    payload: pa.StructType
    optional: frozenset[str] = frozenset()
    prove: Proof = prove_rows

    @cached_property
    def check(self) -> Check:
        """The slow, exact comparison of a payload with this shape."""
        return check_of(self.payload, self.optional)

    @cached_property
    def reading(self) -> arrow_json.ParseOptions:
        """How the JSON reader is to read lines of payloads (`texts.py`)."""
        return parse_options(self.payload)

    @property
    def names(self) -> tuple[str, ...]:
        """The source's names of the columns, in its order."""
        return tuple(cell.name for cell in self.cells)


def image_type(cells: tuple[Cell, ...]) -> pa.StructType:
    """The JSON types of a row image."""
    return pa.struct([pa.field(cell.name, cell.json_type) for cell in cells])
