"""Shaping: which of a source's columns a table has, and in which of them values are masked.

It comes between decoding and everything else, so what is left out or masked is in no file, no
payload between tasks and no digest. What a column was masked with is part of its source type: a
table whose masks change meets a change of type, not other values under the same name.

    hash          the first 32 hexadecimal digits of HMAC-SHA-256, under the secret, of the value
                  as text (binary: as it is; dates and moments: days, microseconds)
    redact        texts: ***; others: null
    truncate(n)   texts: their first n characters

Null stays null. Equal values have equal hashes, so joins and keys work; who knows the secret can
find values by trying them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase

import polars as pl
import polars_hash as plh
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.values import Decoded, ImageBlock
from lakesplice.model.fills import fill_text, fill_value
from lakesplice.model.schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Kind

HASH_DIGITS = 32
REDACTED = "***"
_SPELLING = re.compile(r"(hash|redact|truncate)(?:\((\d{1,6})\))?")
_COUNTED = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64()}
_TEXT = ColumnType(Kind.STRING)
_SECRET_DIGITS = 8


class How(StrEnum):
    """What becomes of a masked value."""

    HASH = "hash"
    REDACT = "redact"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class Mask:
    """How a column is masked; `characters` are those that `TRUNCATE` leaves."""

    how: How
    characters: int = 0

    @classmethod
    def parse(cls, text: str) -> Mask:
        """Read `hash`, `redact` or `truncate(n)`; `ConfigurationError` for anything else."""
        found = _SPELLING.fullmatch(text.strip())
        if found is None or (found[1] == How.TRUNCATE) != (found[2] is not None):
            raise ConfigurationError("a mask is hash, redact or truncate(n)", mask=text)
        return cls(How(found[1]), int(found[2] or 0))


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table takes of its source's rows.

    `include` and `exclude` are patterns of column names (`*`, `?`, `[…]`), an empty `include`
    standing for all; key columns are taken unless they are excluded. Of `masks` the first pattern
    that matches counts. Unless `raw_letters`, dead letters of a table with masks hold no bytes.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    masks: tuple[tuple[str, Mask], ...] = ()
    secret: str = field(default="", repr=False)
    raw_letters: bool = False

    @property
    def withholds(self) -> bool:
        """Whether records and what is said of them must not be kept."""
        return bool(self.masks) and not self.raw_letters

    def takes(self, name: str, key: Iterable[str]) -> bool:
        """Whether the table has the column."""
        if _matches(name, self.exclude):
            return False
        return not self.include or name in key or _matches(name, self.include)

    def mask(self, name: str) -> Mask | None:
        """How the column is masked, if it is."""
        return next((mask for pattern, mask in self.masks if fnmatchcase(name, pattern)), None)


def shaped(decoded: Decoded, shape: Shape) -> Decoded:
    """Return what was decoded with its images as the table takes them."""
    schemas: dict[SourceSchema, SourceSchema] = {}
    blocks = []
    for block in decoded.blocks:
        schema = schemas.get(block.schema)
        if schema is None:
            schema = schemas[block.schema] = shaped_schema(block.schema, shape)
        blocks.append(_shaped(block, schema, shape))
    return replace(decoded, blocks=tuple(blocks))


def shaped_schema(schema: SourceSchema, shape: Shape) -> SourceSchema:
    """Return the schema of shaped images; a column without a type can't be masked so."""
    taken = [column for column in schema.fields if shape.takes(column.name, schema.key)]
    fields = tuple(_masked_field(column, schema.key, shape) for column in taken)
    names = {column.name for column in taken}
    left_out = frozenset(column.name for column in schema.fields) - names
    return replace(schema, fields=fields, left_out=schema.left_out | left_out)


def _shaped(block: ImageBlock, schema: SourceSchema, shape: Shape) -> ImageBlock:
    images = {
        "before": _image(block.before, block.schema, schema, shape),
        "after": _image(block.after, block.schema, schema, shape),
    }
    return replace(block, schema=schema, before=images["before"], after=images["after"])


def _image(image: pa.Table, schema: SourceSchema, to: SourceSchema, shape: Shape) -> pa.Table:
    kinds = {column.name: column.type for column in schema.fields}
    arrays = {}
    for column in to.fields:
        values = image.column(column.name).combine_chunks()
        mask, kind = shape.mask(column.name), kinds[column.name]
        if mask is not None and column.type is not None and kind is not None:
            values = masked(values, kind, mask, shape.secret)
        arrays[column.name] = values
    return pa.table(arrays)


def _masked_field(column: SourceField, key: Iterable[str], shape: Shape) -> SourceField:
    mask = shape.mask(column.name)
    if mask is None or column.type is None:
        return column
    text = column.type.kind is Kind.STRING
    possible = {
        How.HASH: True,
        How.REDACT: column.name not in key,
        How.TRUNCATE: text and column.name not in key,
    }[mask.how]
    described = f"masked:{mask.how}"
    if mask.how is How.TRUNCATE:
        described += f"({mask.characters})"
    if mask.how is How.HASH:
        described += f":{_secret_mark(shape.secret)}"
    if not possible:
        return replace(column, type=None, source_type=described, fill=None)
    kind = _TEXT if mask.how is How.HASH else column.type
    return replace(
        column, type=kind, source_type=described, fill=_masked_fill(column, kind, mask, shape)
    )


def _masked_fill(column: SourceField, kind: ColumnType, mask: Mask, shape: Shape) -> str | None:
    if column.fill is None or column.type is None:
        return None
    value = pa.array([fill_value(column.fill, column.type)], column.type.arrow)
    found = masked(value, column.type, mask, shape.secret)[0]
    return fill_text(found, kind) if found.is_valid else None


def masked(values: pa.Array, kind: ColumnType, mask: Mask, secret: str) -> pa.Array:
    """Return values of the type as the mask leaves them; the head of this module says how."""
    if mask.how is How.HASH:
        return _hashed(values, kind, secret)
    if kind.kind is not Kind.STRING:
        return pa.nulls(len(values), values.type)
    if mask.how is How.TRUNCATE:
        return pc.utf8_slice_codeunits(values, 0, mask.characters)
    return pc.if_else(values.is_valid(), pa.scalar(REDACTED), pa.scalar(None, pa.string()))


def _hashed(values: pa.Array, kind: ColumnType, secret: str) -> pa.Array:
    if kind.kind in _COUNTED:
        values = values.cast(_COUNTED[kind.kind])
    if kind.kind is not Kind.BINARY:
        values = values.cast(pa.string())
    frame = pl.DataFrame({"v": pl.Series(values.cast(pa.large_binary()), dtype=pl.Binary)})
    digest = plh.col("v").chash.hmac_sha256(key=secret)
    digests = frame.select(digest.str.slice(0, HASH_DIGITS)).to_series()
    return digests.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def _secret_mark(secret: str) -> str:
    """A few digits that tell secrets apart, and say no more of them than any hash does."""
    mark = _hashed(pa.array(["lakesplice: which secret"]), _TEXT, secret)
    return str(mark[0].as_py())[:_SECRET_DIGITS]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def masks_of(spelt: Mapping[str, str]) -> tuple[tuple[str, Mask], ...]:
    """Read masks by pattern, in their order; `ConfigurationError` for one that is none."""
    return tuple((pattern, Mask.parse(text)) for pattern, text in spelt.items())
