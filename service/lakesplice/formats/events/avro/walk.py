"""Reads many Avro values field by field: a cursor per record, and one step for all of them
together.

Each record's cursor starts at its first byte, never passes its last, and must end there. So a
record's values come from its own bytes only: no boundary is guessed, and damage concerns one record
alone. The work is a few NumPy steps per field of the schema, not per record. Source: the Avro
specification 1.12, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.avro.numbers import short_numbers, signed
from lakesplice.formats.events.avro.schema import Node, Record, Scalar, Union
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.texts import text_bytes
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Bytes, Integers, Mask

# The members of a record to return, by name; None stands for a whole member.
WantedMembers = Mapping[str, "WantedMembers | None"]

# So many bytes can be read after the last record, as many as any step looks at.
_PAD = 16
_MORE = 0x80
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_ARROW: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}


@dataclass
class DecodedValues:
    """The result: `values` has a row per record, which is valid if `flaws` has none for it."""

    values: pa.Array
    flaws: dict[int, Flaw]


def read_values(
    records: pa.Array, node: Record, wanted: WantedMembers | None = None
) -> DecodedValues:
    """Read binary values, none of them null, which were written by the schema `node`.

    A record becomes a struct of the `wanted` members, or of all; `int` and `long` become int64,
    `enum` a string, `fixed` binary. A union must be of null and at most one other type.
    """
    data, offsets = text_bytes(records)
    padded = np.concatenate([data, np.zeros(_PAD, np.uint8)])
    walk = _Walk(padded, offsets[1:].copy())
    at, rows = offsets[:-1].copy(), np.arange(len(records))
    values, at = walk.record(node, wanted, at, rows, node.name)
    left = np.flatnonzero(at != walk.ends)
    walk.fail(left, "there are bytes after the end of the value", at[left])
    return DecodedValues(values, walk.flaws)


def arrow_type(node: Node, wanted: WantedMembers | None = None) -> pa.DataType:
    """Return the Arrow type that values written by `node` are read as; `UnsupportedError` for those
    that aren't.
    """
    if isinstance(node, Scalar):
        if node.kind not in _ARROW:
            raise UnsupportedError("arrays and maps of Avro are not read", type=node.kind)
        return _ARROW[node.kind]
    if isinstance(node, Union):
        return arrow_type(node.branches[_branch(node)], wanted)
    types = {
        member.name: arrow_type(member.node, _inner(wanted, member.name)) for member in node.fields
    }
    return pa.struct(
        [(name, type_) for name, type_ in types.items() if wanted is None or name in wanted]
    )


def _inner(wanted: WantedMembers | None, name: str) -> WantedMembers | None:
    """The wanted members of a member; `None` means all of it."""
    return None if wanted is None else wanted.get(name)


def _branch(union: Union) -> int:
    """The index of a union's type other than null; if there is none, of null."""
    others = [at for at, node in enumerate(union.branches) if not _is_null(node)]
    if len(others) > 1:
        raise UnsupportedError("an Avro union of several types besides null is not read")
    return others[0] if others else 0


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind == "null"


@dataclass
class _Walk:
    """`data` are all bytes with padding, `ends` where each record ends."""

    data: Bytes
    ends: Integers
    flaws: dict[int, Flaw] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._eights = _windows(self.data, 8)

    def fail(
        self,
        rows: Integers,
        why: str,
        at: Integers,
        reason: DeadReason = DeadReason.NOT_AVRO,
    ) -> None:
        """Give rows a verdict; an earlier one is kept."""
        for row, place in zip(rows.tolist(), at.tolist(), strict=True):
            behind = int(self.ends[row]) - place
            self.flaws.setdefault(row, Flaw(reason, f"{why}, {behind} bytes before the end"))

    def _stop_at_ends(self, at: Integers, rows: Integers, path: str) -> Integers:
        """Return the cursors after a step; those beyond the end of their record are stopped at the
        end.
        """
        ends = self.ends if len(rows) == len(self.ends) else self.ends[rows]
        over = at > ends
        if not over.any():
            return at
        self.fail(rows[over], f"{path} runs beyond the record", ends[over])
        return np.minimum(at, ends)

    def value(
        self, node: Node, wanted: WantedMembers | None, at: Integers, rows: Integers, path: str
    ) -> tuple[pa.Array, Integers]:
        """Read a value for each of `rows`, whose cursors are `at`; return the cursors after it."""
        if isinstance(node, Union):
            return self._union(node, wanted, at, rows, path)
        if isinstance(node, Record):
            return self.record(node, wanted, at, rows, path)
        return self._scalar(node, at, rows, path)

    def record(
        self, node: Record, wanted: WantedMembers | None, at: Integers, rows: Integers, path: str
    ) -> tuple[pa.Array, Integers]:
        arrays, names = [], []
        for member in node.fields:
            inner = f"{path}.{member.name}"
            if wanted is not None and member.name not in wanted:
                at = self._skip(member.node, at, rows, inner)
                continue
            values, at = self.value(member.node, _inner(wanted, member.name), at, rows, inner)
            arrays.append(values)
            names.append(member.name)
        if not arrays:
            return pa.array([{}] * len(rows), pa.struct([])), at
        return pa.StructArray.from_arrays(arrays, names), at

    def _union(
        self, node: Union, wanted: WantedMembers | None, at: Integers, rows: Integers, path: str
    ) -> tuple[pa.Array, Integers]:
        chosen = _branch(node)
        here, at = self._here(node, chosen, at, rows, path)
        inner = node.branches[chosen]
        if here is None:
            return self.value(inner, wanted, at, rows, path)
        if not len(here):
            return pa.nulls(len(rows), arrow_type(inner, wanted)), at
        values, behind = self.value(inner, wanted, at[here], rows[here], path)
        at = at.copy()
        at[here] = behind
        return _spread(values, here, len(rows)), at

    def _here(
        self, node: Union, chosen: int, at: Integers, rows: Integers, path: str
    ) -> tuple[Integers | None, Integers]:
        """Which rows have the type `chosen` of a union, None if all; the cursors at the value."""
        which, at = self._longs(at, rows, path)
        if (which == chosen).all():
            return None, at
        unknown = (which < 0) | (which >= len(node.branches))
        if unknown.any():
            self.fail(rows[unknown], f"{path} is of no type of its union", at[unknown])
        return np.flatnonzero(which == chosen), at

    def _skip(self, node: Node, at: Integers, rows: Integers, path: str) -> Integers:
        """Return the cursors after an unused value."""
        if isinstance(node, Union):
            chosen = _branch(node)
            here, at = self._here(node, chosen, at, rows, path)
            if here is None:
                return self._skip(node.branches[chosen], at, rows, path)
            if len(here):
                at = at.copy()
                at[here] = self._skip(node.branches[chosen], at[here], rows[here], path)
            return at
        if isinstance(node, Record):
            for member in node.fields:
                at = self._skip(member.node, at, rows, f"{path}.{member.name}")
            return at
        if node.kind in ("string", "bytes"):
            return self._lengths(at, rows, path)[1]
        if node.kind in ("int", "long", "enum"):
            return self._longs(at, rows, path)[1]
        return self._stop_at_ends(at + _SIZES.get(node.kind, node.size), rows, path)

    def _scalar(
        self, node: Scalar, at: Integers, rows: Integers, path: str
    ) -> tuple[pa.Array, Integers]:
        kind = node.kind
        if kind == "null":
            return pa.nulls(len(rows)), at
        if kind == "long":
            values, at = self._longs(at, rows, path)
            return pa.array(values), at
        if kind == "int":
            values, at = self._longs(at, rows, path)
            self._refuse((values < _INT_MIN) | (values > _INT_MAX), rows, at, path, "32 bits")
            return pa.array(values), at
        if kind == "enum":
            return self._enum(node, at, rows, path)
        if kind in ("string", "bytes"):
            start, end = self._lengths(at, rows, path)
            values = self._pieces(start, end)
            return (self._texts(values, rows, end, path) if kind == "string" else values), end
        behind = self._stop_at_ends(at + _SIZES.get(kind, node.size), rows, path)
        if kind == "fixed":
            return self._pieces(np.minimum(at, behind), behind), behind
        if kind == "boolean":
            octets = self.data[at]
            self._refuse(octets > 1, rows, behind, path, "0 or 1")
            return pa.array(octets == 1), behind
        octets = self._eights[at]
        if kind == "double":
            return pa.array(np.ascontiguousarray(octets).view("<f8")[:, 0]), behind
        return pa.array(np.ascontiguousarray(octets[:, :4]).view("<f4")[:, 0]), behind

    def _refuse(self, wrong: Mask, rows: Integers, at: Integers, path: str, within: str) -> None:
        if wrong.any():
            why = f"{path} is beyond {within}"
            self.fail(rows[wrong], why, at[wrong], DeadReason.OUT_OF_RANGE)

    def _enum(
        self, node: Scalar, at: Integers, rows: Integers, path: str
    ) -> tuple[pa.Array, Integers]:
        which, at = self._longs(at, rows, path)
        unknown = (which < 0) | (which >= len(node.symbols))
        self._refuse(unknown, rows, at, path, "its symbols")
        places = pa.array(np.where(unknown, 0, which), mask=unknown)
        return pa.array(node.symbols, pa.string()).take(places), at

    def _lengths(self, at: Integers, rows: Integers, path: str) -> tuple[Integers, Integers]:
        """Return where values that begin with their length begin and end."""
        lengths, start = self._longs(at, rows, path)
        ends = self.ends if len(rows) == len(self.ends) else self.ends[rows]
        wrong = (lengths < 0) | (lengths > ends - start)
        if wrong.any():
            self.fail(rows[wrong], f"{path} runs beyond the record", start[wrong])
            lengths = np.where(wrong, 0, lengths)
        return start, start + lengths

    def _pieces(self, start: Integers, end: Integers) -> pa.Array:
        """The bytes between ascending places: every second part of an array over all bytes."""
        count = len(start)
        if not count:
            return pa.array([], pa.binary())
        cuts = np.empty(2 * count, np.int32)
        cuts[::2], cuts[1::2] = start, end
        buffers = [None, pa.py_buffer(cuts), pa.py_buffer(self.data)]
        every = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        return every.take(pa.array(np.arange(0, 2 * count, 2)))

    def _texts(self, values: pa.Array, rows: Integers, at: Integers, path: str) -> pa.Array:
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            wrong = ~np.fromiter((_is_unicode(value) for value in values), np.bool_, len(values))
        self.fail(rows[wrong], f"{path} isn't UTF-8", at[wrong])
        return pa.array([None if bad else v.as_py() for v, bad in zip(values, wrong, strict=True)],
                        pa.binary()).cast(pa.string())  # fmt: skip

    def _longs(self, at: Integers, rows: Integers, path: str) -> tuple[Integers, Integers]:
        """Read a number of one to ten bytes, seven bits each, the least significant first."""
        first = self.data[at]
        if not (first & _MORE).any():
            return signed(first.astype(np.int64)), self._stop_at_ends(at + 1, rows, path)
        words = np.ascontiguousarray(self._eights[at]).view("<u8")[:, 0]
        raw, sizes = short_numbers(words)
        long = np.flatnonzero(sizes > 8)
        if len(long):
            high = self.data[at[long] + 8].astype(np.uint64)
            last = self.data[at[long] + 9].astype(np.uint64)
            more = high >= _MORE
            raw[long] |= (high & np.uint64(0x7F)) << np.uint64(56)
            raw[long] |= np.where(more, last << np.uint64(63), np.uint64(0))
            sizes[long] += more
            endless = long[more & (last > 1)]
            self.fail(rows[endless], f"{path} is a number beyond 64 bits", at[endless])
        return signed(raw.view(np.int64)), self._stop_at_ends(at + sizes, rows, path)


def _windows(data: Bytes, size: int) -> Bytes:
    windows: Bytes = np.lib.stride_tricks.sliding_window_view(data, size)
    return windows


def _spread(values: pa.Array, here: Integers, count: int) -> pa.Array:
    """Put values at ascending places of an array of `count`; the others are null."""
    places = np.full(count, -1, np.int64)
    places[here] = np.arange(len(here))
    return values.take(pa.array(places, mask=places < 0))


def _is_unicode(value: pa.Scalar) -> bool:
    try:
        str(value.as_buffer(), "utf-8")
    except UnicodeDecodeError:
        return False
    return True
