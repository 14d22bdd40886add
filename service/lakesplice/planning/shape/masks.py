"""Masks: replacements of values that must not be in a lake.

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
from dataclasses import dataclass, replace
from enum import StrEnum

import polars as pl
import polars_hash as plh
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import ConfigurationError
from lakesplice.model.column_values import counted, fill_text, fill_value
from lakesplice.model.source_schema import SourceField
from lakesplice.model.types import ColumnType, Primitive

HASH_DIGITS = 32
REDACTED = "***"
_SPELLING = re.compile(r"(hash|redact|truncate)(?:\((\d{1,6})\))?")
_TEXT = ColumnType(Primitive.STRING)
_SECRET_DIGITS = 8
_MASKED = "masked:"


class MaskKind(StrEnum):
    """How a masked value is replaced."""

    HASH = "hash"
    REDACT = "redact"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class Mask:
    """How a column is masked; `characters` are those that `TRUNCATE` leaves."""

    how: MaskKind
    characters: int = 0

    @classmethod
    def parse(cls, text: str) -> Mask:
        """Read `hash`, `redact` or `truncate(n)`; `ConfigurationError` for anything else."""
        found = _SPELLING.fullmatch(text.strip())
        if found is None or (found[1] == MaskKind.TRUNCATE) != (found[2] is not None):
            raise ConfigurationError("a mask is hash, redact or truncate(n)", mask=text)
        return cls(MaskKind(found[1]), int(found[2] or 0))


def masks_of(texts_by_pattern: Mapping[str, str]) -> tuple[tuple[str, Mask], ...]:
    """Parse masks by pattern, in their order; `ConfigurationError` for an invalid one."""
    return tuple((pattern, Mask.parse(text)) for pattern, text in texts_by_pattern.items())


def masked(values: pa.Array, kind: ColumnType, mask: Mask, secret: str) -> pa.Array:
    """Return values of the type with the mask applied, as the head of this module says."""
    if mask.how is MaskKind.HASH:
        return _hashed(values, kind, secret)
    if kind.kind is not Primitive.STRING:
        return pa.nulls(len(values), values.type)
    if mask.how is MaskKind.TRUNCATE:
        return pc.utf8_slice_codeunits(values, 0, mask.characters)
    return pc.if_else(values.is_valid(), pa.scalar(REDACTED), pa.scalar(None, pa.string()))


def is_masked(source_type: str) -> bool:
    """Whether a column of this source type holds masked values."""
    return source_type.startswith(_MASKED)


def masked_field(
    column: SourceField, mask: Mask | None, key: Iterable[str], secret: str
) -> SourceField:
    """Return a column with its mask applied; without a type if it can't be masked in this way."""
    if mask is None or column.type is None:
        return column
    text = column.type.kind is Primitive.STRING
    possible = {
        MaskKind.HASH: True,
        MaskKind.REDACT: column.name not in key,
        MaskKind.TRUNCATE: text and column.name not in key,
    }[mask.how]
    described = f"{_MASKED}{mask.how}"
    if mask.how is MaskKind.TRUNCATE:
        described += f"({mask.characters})"
    if mask.how is MaskKind.HASH:
        described += f":{_secret_mark(secret)}"
    if not possible:
        return replace(column, type=None, source_type=described, fill=None)
    kind = _TEXT if mask.how is MaskKind.HASH else column.type
    fill = _masked_fill(column, kind, mask, secret)
    return replace(column, type=kind, source_type=described, fill=fill)


def _masked_fill(column: SourceField, kind: ColumnType, mask: Mask, secret: str) -> str | None:
    if column.fill is None or column.type is None:
        return None
    value = pa.array([fill_value(column.fill, column.type)], column.type.arrow)
    found = masked(value, column.type, mask, secret)[0]
    return fill_text(found, kind) if found.is_valid else None


def _hashed(values: pa.Array, kind: ColumnType, secret: str) -> pa.Array:
    values = counted(values, kind)
    if kind.kind is not Primitive.BINARY:
        values = values.cast(pa.string())
    frame = pl.DataFrame({"v": pl.Series(values.cast(pa.large_binary()), dtype=pl.Binary)})
    digest = plh.col("v").chash.hmac_sha256(key=secret)
    digests = frame.select(digest.str.slice(0, HASH_DIGITS)).to_series()
    return digests.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def _secret_mark(secret: str) -> str:
    """A few digits that distinguish secrets, and show no more of them than any hash does."""
    mark = _hashed(pa.array(["lakesplice: which secret"]), _TEXT, secret)
    return str(mark[0].as_py())[:_SECRET_DIGITS]
