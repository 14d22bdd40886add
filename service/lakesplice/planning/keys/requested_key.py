"""A key that somebody names: its values in the table's types, and its hash."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.formats.rowindex.run import Run
from lakesplice.model.address import RowAddress
from lakesplice.model.arrays import KeyHash, KeyHashes, Mask
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import KEY_HIGH, KEY_LOW
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import WHOLE_NUMBERS, Primitive
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import UNKNOWN, locate

KeyValues: TypeAlias = Any
"""A key's value; of several columns a sequence in key order, or a mapping by column."""

# Types whose JSON value equals the stored value. Dates and decimals are encoded in other ways.
_AS_IN_JSON = (
    Primitive.STRING,
    *WHOLE_NUMBERS,
    Primitive.BOOLEAN,
)


@dataclass(frozen=True)
class RequestedKey:
    """A key of a table: its columns' values by stored name, and its hash."""

    values: Mapping[str, Any]
    hash: KeyHash

    @classmethod
    def of(cls, schema: TableSchema, key_values: KeyValues) -> RequestedKey:
        """Convert the values; a text may stand for a value of any type, in the form that `read`
        shows.

        `UsageError` if they aren't values of the table's key columns.
        """
        if not schema.key:
            raise UsageError("the table has no columns yet, so no keys; see `lakesplice dlq list`")
        arrays = {
            name: _array(_column(schema, name), v) for name, v in _by_column(schema, key_values)
        }
        hashes = key_hash(pa.table(arrays), schema)
        values = {name: array[0].as_py() for name, array in arrays.items()}
        return cls(values, hashes.at(0))

    @property
    def digits(self) -> str:
        """The hash in 32 hexadecimal digits."""
        return f"{self.hash.high:016x}{self.hash.low:016x}"

    def among(self, changes: pa.Table) -> Mask:
        """Mark the changes of this key."""
        high, low = (changes.column(name).to_numpy() for name in (KEY_HIGH, KEY_LOW))
        mask: Mask = (high == np.uint64(self.hash.high)) & (low == np.uint64(self.hash.low))
        return mask

    def located(self, runs: Sequence[Run], manifest: Manifest) -> RowAddress | None:
        """Return the key's address by all index runs of a version; None if no run has the key."""
        return self._located(runs, frozenset(manifest.groups))

    def entry(self, run: Run) -> RowAddress | None:
        """Return the address that one run has for the key, even if that file group is no longer
        live.
        """
        return self._located([run], frozenset(run.groups.tolist()))

    def _located(self, runs: Sequence[Run], groups: frozenset[int]) -> RowAddress | None:
        if not runs:
            return None
        key = KeyHashes(*(np.array([half], np.uint64) for half in self.hash))
        group, row = locate(runs, key, np.array(sorted(groups), np.int64))
        return None if group[0] == UNKNOWN else RowAddress(int(group[0]), int(row[0]))

    def is_of(
        self, raw: bytes | None, schema: TableSchema, shard: Mapping[str, str]
    ) -> bool | None:
        """Return whether a record's key, in JSON, is this key; None if it can't be decided.

        `shard` has the values of the key columns that the record's topic gives.
        """
        other = RequestedKey.sent(raw, schema, shard)
        return None if other is None else other.hash == self.hash

    @classmethod
    def sent(
        cls, raw: bytes | None, schema: TableSchema, shard: Mapping[str, str]
    ) -> RequestedKey | None:
        """Return the key that a record has, in JSON; None if it can't be decided. `shard` as in
        `is_of`.
        """
        try:
            fields = json.loads(raw or b"")
            fields = fields.get("payload", fields)
            names = {n: _column(schema, n).source_name for n in schema.key if n not in shard}
            # Maxwell puts `pk.` before each name.
            sent = {
                n: fields[of] if of in fields else fields[f"pk.{of}"] for n, of in names.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if any(_column(schema, name).type.kind not in _AS_IN_JSON for name in sent):
            return None
        try:
            return cls.of(schema, {**sent, **shard})
        except UsageError:
            return None


def _by_column(schema: TableSchema, key_values: KeyValues) -> list[tuple[str, Any]]:
    """The values by column, in key order."""
    if isinstance(key_values, Mapping):
        if key_values.keys() != set(schema.key):
            raise UsageError("give a value for each key column", key=list(schema.key))
        return [(name, key_values[name]) for name in schema.key]
    values = (
        list(key_values)
        if isinstance(key_values, Sequence) and not isinstance(key_values, str | bytes)
        else [key_values]
    )
    if schema.keeps_versions and len(values) == len(schema.versioned_key):
        raise UsageError(
            "the table has a row for each version; name one by its position as well, as"
            " Table.read_history shows it",
            key=list(schema.key),
        )
    if len(values) != len(schema.key):
        raise UsageError(
            "the key has another number of columns; give a value for each, in this order",
            key=list(schema.key),
            given=len(values),
        )
    return list(zip(schema.key, values, strict=True))


def _column(schema: TableSchema, name: str) -> Column:
    return next(column for column in schema.columns if column.name == name)


def _array(column: Column, value: Any) -> pa.Array:
    kind = column.type.arrow
    if value is None:
        raise UsageError("a key column can't be null; give a value", column=column.name)
    try:
        if isinstance(value, str) and column.type.kind is Primitive.BINARY:
            value = bytes.fromhex(value[2:]) if value.startswith("0x") else value.encode()
        if isinstance(value, str) and column.type.kind is not Primitive.STRING:
            return pa.array([value]).cast(kind)
        return pa.array([value], kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            "the value doesn't fit the key column's type; give one that does",
            column=column.name,
            type=column.type.name,
        ) from error
