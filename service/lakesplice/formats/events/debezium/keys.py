"""Record keys: their columns, and the check that a key agrees with its row image.

A key is first compared, as text, with the text that the image's key columns would have. Only a key
that differs is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.strict import Flaw, as_read, find_flaw, read_json, shown
from lakesplice.formats.events.json_reading.template import (
    read_payload,
    split_payload,
    split_schema,
)
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask

Shape = TypeVar("Shape", bound="ComparedKey")
_TO_ESCAPE = r'["\\\x00-\x1f]'
_TABLE_ID = "TableId"
_TABLE_ID_TEXT = re.compile(r'\{("TableId":\s*"(?:[^"\\]|\\.)*",\s*)')


class ComparedKey(Protocol):
    """The columns of keys like the first one, and their comparison with row images."""

    @property
    def prefix(self) -> bytes:
        """The bytes with which all of them start."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The key's columns."""
        ...

    def differing(self, keys: pa.Array, columns: Sequence[pa.Array]) -> Mask:
        """Mark the keys that may differ from the image's key columns; all others are equal."""
        ...

    def compare(self, key: bytes, columns: Sequence[pa.Array], row: int) -> Flaw | bool | None:
        """Compare one key with its row image by value. Return a flaw if they differ, None if they
        agree, and False if the key has other columns and so belongs to other records.
        """
        ...

    def images(
        self, keys: Sequence[bytes], types: Mapping[str, pa.DataType]
    ) -> tuple[dict[str, list[object]], dict[int, Flaw]]:
        """Return for each key column the keys' values, in the given types, and for each key without
        values (by index) the reason.
        """
        ...


@dataclass(frozen=True)
class KeyShape:
    """The bytes with which keys like the first one start, and their columns, in key order.

    `table_id` is the text of a member before the columns that names the table, if there is one.
    """

    prefix: bytes
    names: tuple[str, ...]
    spaced: bool
    suffix: bytes = b""
    table_id: str = ""

    @property
    def _closing(self) -> bytes:
        return b"" if self.prefix and not self.suffix else b"}"

    def read(self, key: bytes) -> Mapping[str, object] | Flaw:
        """Parse one key."""
        if not key.startswith(self.prefix) or not key.endswith(self.suffix):
            return _flaw(
                f"the key {shown(key)} has another form than those of the records around it"
            )
        payload = read_payload(key[len(self.prefix) : len(key) - len(self.suffix)], self._closing)
        if isinstance(payload, Flaw):
            return _flaw(f"the key can't be read: {payload.detail}")
        if not isinstance(payload, dict):
            return _flaw(f"the key is {shown(payload)}")
        return _besides_table_id(payload) if self.table_id else payload

    def differing(self, keys: pa.Array, columns: Sequence[pa.Array]) -> Mask:
        """Mark the keys whose text differs from the columns'; their values may still be equal."""
        same = pc.equal(keys, self.texts(columns)).fill_null(False)
        mask: Mask = ~same.to_numpy(zero_copy_only=False)
        return mask

    def compare(self, key: bytes, columns: Sequence[pa.Array], row: int) -> Flaw | bool | None:
        """Compare one key by value, as `ComparedKey` says."""
        return _compare_key(key, self, columns, row)

    def images(
        self, keys: Sequence[bytes], types: Mapping[str, pa.DataType]
    ) -> tuple[dict[str, list[object]], dict[int, Flaw]]:
        """Return the keys' own values, as `ComparedKey` says."""
        return _key_only_images(keys, self, types)

    def texts(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the texts of keys with the columns' values, as binary; null if a text isn't
        certain.
        """
        comma, colon = (", ", ": ") if self.spaced else (",", ":")
        pieces: list[object] = [self.prefix.decode() + "{" + self.table_id]
        for at, (name, column) in enumerate(zip(self.names, columns, strict=True)):
            lead = comma if at else ""
            pieces += [f"{lead}{json.dumps(name, ensure_ascii=False)}{colon}", *_written(column)]
        closing = "}" + (self.suffix.decode() or ("}" if self.prefix else ""))
        return pc.binary_join_element_wise(*pieces, closing, "").cast(pa.binary())


def _written(column: pa.Array) -> list[object]:
    if pa.types.is_string(column.type):
        doubtful = pc.match_substring_regex(column, _TO_ESCAPE)
        if doubtful.true_count:
            column = pc.if_else(doubtful, pa.scalar(None, column.type), column)
        return ['"', column, '"']
    if pa.types.is_floating(column.type):
        return [pa.nulls(len(column), pa.string())]
    return [column.cast(pa.string())]


def inspect_key(key: bytes) -> KeyShape | Flaw:
    """Read one key with every check."""
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return _flaw("the key is not UTF-8")
    split = split_schema(text)
    first = None if split else split_payload(text)
    if first is not None and first.schema is not None:
        inner = inspect_key(key[len(first.prefix) : len(key) - len(first.suffix)])
        if not isinstance(inner, KeyShape):
            return inner
        return replace(inner, prefix=first.prefix, suffix=first.suffix)
    prefix = split[0].encode() if split and split[1][:1] in ("{", "n") else b""
    payload = read_payload(key[len(prefix) :], b"") if prefix else read_json(key)
    if isinstance(payload, Flaw):
        return _flaw(f"the key can't be read: {payload.detail}")
    if not isinstance(payload, dict) or not payload:
        return _flaw(f"the key is {shown(payload)}, not an object with the key's columns")
    return KeyShape(prefix, tuple(payload), b'": ' in key[len(prefix) :])


def without_table_id(shape: KeyShape, key: bytes, columns: Sequence[str]) -> KeyShape | None:
    """Return the columns of a key whose first member is the table's name, added by Flink CDC's
    sink, if no column has that member's name; None if the table has no key.
    """
    if shape.names[0] != _TABLE_ID or _TABLE_ID in columns:
        return shape
    if len(shape.names) == 1:
        return None
    named = _TABLE_ID_TEXT.match(key[len(shape.prefix) :].decode())
    return shape if named is None else replace(shape, names=shape.names[1:], table_id=named[1])


def _besides_table_id(payload: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value for name, value in payload.items() if name != _TABLE_ID}


def in_image(key: Shape, names: Sequence[str]) -> Shape | Flaw:
    """Check that all columns of a key are columns of its row image."""
    missing = next((name for name in key.names if name not in names), None)
    if missing is None:
        return key
    return _flaw(f"the row has no column {missing!r}, which the record's key has")


def _compare_key(
    key: bytes, shape: KeyShape, columns: Sequence[pa.Array], row: int
) -> Flaw | bool | None:
    """Compare one key with its row image by value. Return a flaw if they differ, None if they
    agree, and False if the key has other columns than `shape` and so belongs to other records.
    """
    payload = shape.read(key)
    if isinstance(payload, Flaw):
        return payload if _is_damaged(key) else False
    if set(payload) != set(shape.names):
        return False
    for name, column in zip(shape.names, columns, strict=True):
        written = payload[name]
        flaw = find_flaw(written, column.type, f"key.{name}")
        if flaw or written is None:
            return _flaw(flaw.detail if flaw else f"the key's column {name!r} is null")
        if pa.scalar(as_read(written, column.type), column.type) != column[row]:
            detail = f"the key says {name}={shown(written)}, the row {shown(column[row].as_py())}"
            return Flaw(DeadReason.KEY_MISMATCH, detail)
    return None


def _is_damaged(key: bytes) -> bool:
    return isinstance(inspect_key(key), Flaw)


def _flaw(detail: str) -> Flaw:
    return Flaw(DeadReason.MISSING_KEY, detail)


def _key_only_images(
    keys: Sequence[bytes], shape: KeyShape, types: Mapping[str, pa.DataType]
) -> tuple[dict[str, list[object]], dict[int, Flaw]]:
    """Return for each key column the keys' values, and for each key without values (by index) the
    reason.
    """
    values: dict[str, list[object]] = {name: [] for name in shape.names}
    flaws: dict[int, Flaw] = {}
    for place, key in enumerate(keys):
        read = shape.read(key)
        payload = {} if isinstance(read, Flaw) else read
        if set(payload) != set(shape.names):
            flaws[place] = _flaw(f"the key {shown(key)} doesn't have {', '.join(shape.names)}")
        for name in shape.names:
            flaw = find_flaw(payload.get(name), types[name], f"key.{name}")
            if flaw and place not in flaws:
                flaws[place] = flaw
        for name in shape.names:
            value = None if place in flaws else payload[name]
            values[name].append(as_read(value, types[name]))
    return values, flaws
