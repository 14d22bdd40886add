"""Keys in Avro, compared with row images value by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.avro import Record, framed, parse_schema, read_values
from lakesplice.formats.events.json_reading.record_group import slices_after
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.values.decode_context import DecodeContext, SchemaText
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask


@dataclass(frozen=True)
class AvroKey:
    """The head with which keys like the first one start, and their columns."""

    prefix: bytes
    node: Record

    @property
    def names(self) -> tuple[str, ...]:
        """The key's columns."""
        return tuple(member.name for member in self.node.fields)

    def differing(self, keys: pa.Array, columns: Sequence[pa.Array]) -> Mask:
        """Mark the keys whose values differ from the columns, or that can't be read."""
        read = read_values(slices_after(keys, self.prefix), self.node)
        differs = np.zeros(len(keys), np.bool_)
        differs[list(read.flaws)] = True
        for written, column in zip(read.values.flatten(), columns, strict=True):
            if written.type != column.type:
                return np.ones(len(keys), np.bool_)
            same = pc.equal(written, column).fill_null(False)
            differs |= ~same.to_numpy(zero_copy_only=False)
        return differs

    def compare(self, key: bytes, columns: Sequence[pa.Array], row: int) -> Flaw | None:
        """Compare one key with a row of its image by value."""
        values = self._read(key)
        if isinstance(values, Flaw):
            return values
        for name, column in zip(self.names, columns, strict=True):
            found = column[row].as_py()
            if values[name] is None:
                return Flaw(DeadReason.MISSING_KEY, f"the key's column {name!r} is null")
            if values[name] != found or type(values[name]) is not type(found):
                detail = f"the key says {name}={shown(values[name])}, the row {shown(found)}"
                return Flaw(DeadReason.KEY_MISMATCH, detail)
        return None

    def images(
        self, keys: Sequence[bytes], types: Mapping[str, pa.DataType]
    ) -> tuple[dict[str, list[object]], dict[int, Flaw]]:
        """Return for each key column the keys' values, and for each key without values (by index)
        the reason.
        """
        columns: dict[str, list[object]] = {name: [] for name in self.names}
        flaws: dict[int, Flaw] = {}
        for place, key in enumerate(keys):
            values = self._read(key)
            if isinstance(values, Flaw):
                flaws[place] = values
            for name in self.names:
                value = None if isinstance(values, Flaw) else values[name]
                flaw = _no_value(name, value, types[name])
                if flaw:
                    flaws.setdefault(place, flaw)
                columns[name].append(None if flaw else value)
        return columns, flaws

    def _read(self, key: bytes) -> Mapping[str, object] | Flaw:
        rest = pa.array([key[len(self.prefix) :]], pa.binary())
        read = read_values(rest, self.node)
        if read.flaws:
            return Flaw(DeadReason.MISSING_KEY, f"the key can't be read: {read.flaws[0].detail}")
        values: Mapping[str, object] = read.values[0].as_py()
        return values


def _no_value(name: str, value: object, type_: pa.DataType) -> Flaw | None:
    if value is None:
        return Flaw(DeadReason.MISSING_KEY, f"the key's column {name!r} is null")
    try:
        pa.scalar(value, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return Flaw(DeadReason.MISSING_KEY, f"the key's column {name!r} is of another type")
    return None


def inspect_avro_key(key: bytes, context: DecodeContext) -> AvroKey | Flaw:
    """Read the head of one key and the schema that it names."""
    head = framed(key)
    if head is None:
        return Flaw(
            DeadReason.MISSING_KEY,
            f"the key {shown(key)} doesn't begin with the number of a schema",
        )
    schema = (context.schemas or {}).get(head.schema)
    if schema is None:
        detail = f"the registry has no schema {head.schema}, which the key names"
        return Flaw(DeadReason.UNKNOWN_SCHEMA, detail)
    node = _key_schema(schema)
    return node if isinstance(node, Flaw) else AvroKey(head.prefix, node)


@lru_cache(maxsize=1024)
def _key_schema(schema: SchemaText) -> Record | Flaw:
    try:
        node = parse_schema(schema.text, schema.references)
    except (UnsupportedError, KeyError, TypeError, ValueError, AttributeError) as error:
        return Flaw(DeadReason.MISSING_KEY, f"the key's schema can't be read: {error!r}")
    if isinstance(node, Record) and node.fields:
        return node
    return Flaw(DeadReason.MISSING_KEY, "the key's schema isn't a record of the key's columns")
