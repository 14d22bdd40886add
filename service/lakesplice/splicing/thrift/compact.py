"""Thrift's compact protocol, lossless: unknown fields are written back as they were read.

Its types and values are here; `decoding.py` reads them, `encoding.py` writes them.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias


class WireType(IntEnum):
    """The types of the protocol; a boolean has the type TRUE, and its value is kept separately."""

    STOP = 0
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


Value: TypeAlias = "bool | int | bytes | List | Map | Struct"
Field: TypeAlias = tuple[WireType, Value]


@dataclass(frozen=True, slots=True)
class List:
    """A list, or a set, of values of one type."""

    wire: WireType
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """Pairs, in the order in which they were read."""

    key_wire: WireType
    value_wire: WireType
    pairs: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields by their ids, in the order in which they were read; a double or a UUID is kept as
    bytes.
    """

    fields: Mapping[int, Field] = field(default_factory=dict)

    def get(self, field_id: int) -> Value | None:
        """Return a field's value whatever its type, or None."""
        found = self.fields.get(field_id)
        return None if found is None else found[1]

    def replaced(self, changes: Mapping[int, Field | None]) -> Struct:
        """Return the struct with some fields set, or removed if None.

        Fields keep their order; new fields are inserted by their ids.
        """
        fields = dict(self.fields)
        added = False
        for field_id, change in changes.items():
            if change is None:
                fields.pop(field_id, None)
            else:
                added = added or field_id not in fields
                fields[field_id] = change
        return Struct(dict(sorted(fields.items())) if added else fields)

    def only(self, field_ids: Collection[int]) -> Struct:
        """Return the struct with only the fields of these ids."""
        if all(field_id in field_ids for field_id in self.fields):
            return self
        return Struct({at: found for at, found in self.fields.items() if at in field_ids})


EMPTY = Struct()


LIST_SIZE_FOLLOWS = 15
RUN_MIN = 32  # longer lists of numbers, flags or equally long bytes are read at once
