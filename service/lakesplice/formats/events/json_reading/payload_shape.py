"""The shape of payloads: the columns and JSON types that similar records share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyarrow import json as arrow_json

from lakesplice.formats.events.json_reading.null_proof import NullProof, prove_rows
from lakesplice.formats.events.json_reading.strict import Check, check_of
from lakesplice.formats.events.json_reading.texts import parse_options
from lakesplice.formats.events.values.encoding import Cell

Proof = Callable[[pa.Array, pa.Array], NullProof]


@dataclass(frozen=True)
class EventShape:
    """The shape of an event's payload: the columns of its row images, and the JSON types of all
    members.

    `optional` members may be absent; if one is an object or a list of objects, its members may be
    absent too. Then `prove` must take them into account: a text is unproven unless every null that
    was read in another member was written.
    """

    cells: tuple[Cell, ...]
    payload: pa.StructType
    optional: frozenset[str] = frozenset()
    prove: Proof = prove_rows

    @cached_property
    def check(self) -> Check:
        """Compare a payload with this shape exactly; slow. Return a flaw, or None."""
        return check_of(self.payload, self.optional)

    @cached_property
    def reading(self) -> arrow_json.ParseOptions:
        """The JSON reader's options for lines of payloads (`texts.py`)."""
        return parse_options(self.payload)

    @property
    def requires_all(self) -> bool:
        """Whether a text is of the shape if it has every member in its type, and no other."""
        return not self.optional and self.prove is prove_rows

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names at the source, in its order."""
        return tuple(cell.name for cell in self.cells)


def image_type(cells: tuple[Cell, ...]) -> pa.StructType:
    """The Arrow type in which a row image is read."""
    return pa.struct([pa.field(cell.name, cell.json_type) for cell in cells])
