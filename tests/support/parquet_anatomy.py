"""Takes a Parquet file apart without our code: metadata by field ids, values by pyarrow.

Fields are those of parquet.thrift by their ids. Every value becomes one that Python orders as the
format orders its column: numbers, or bytes compared one by one; so does every bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.support.thrift import Compact

Fields = dict[int, Any]
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
DATA, INDEX, DICTIONARY, DATA_V2 = range(4)
WITH_DICTIONARY = frozenset((2, 8))

_DETAILS = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
_ENCODING = {DATA: 2, DICTIONARY: 2, DATA_V2: 4}
_DECIMAL, _INTEGER, _FLOAT16 = 5, 10, 15  # members of LogicalType
_NUMBERS = {BOOLEAN: "?", INT32: "<i4", INT64: "<i8", FLOAT: "<f4", DOUBLE: "<f8"}


@dataclass(frozen=True)
class Column:
    """A leaf of the schema; `top` is the number of its field at the top."""

    name: str
    top: int
    physical: int
    width: int | None
    flat: bool
    nullable: bool
    element: Fields = field(repr=False)

    @property
    def decimal(self) -> bool:
        return self.element.get(6) == 5 or _DECIMAL in self.element.get(10, {})

    @property
    def ordered(self) -> bool:
        """Whether the format gives its values an order."""
        return self.physical != INT96 and self.element.get(6) != 21

    @property
    def number(self) -> np.dtype[Any] | None:
        """What a bound is where it is one number of a fixed width."""
        if self.physical in _NUMBERS:
            code = _NUMBERS[self.physical]
            return np.dtype(code.replace("i", "u") if self._unsigned else code)
        return np.dtype("<f2") if _FLOAT16 in self.element.get(10, {}) else None

    @property
    def floating(self) -> bool:
        return self.number is not None and self.number.kind == "f"

    def bound(self, data: bytes) -> Any:
        """The value a bound stands for."""
        if self.number is not None:
            return np.frombuffer(data, self.number)[0].item()
        return int.from_bytes(data, "big", signed=True) if self.decimal else data

    def width_fits(self, data: bytes) -> bool:
        """Whether a bound has as many bytes as one may have."""
        if self.number is not None:
            return len(data) == self.number.itemsize
        if self.physical == FIXED:
            assert self.width is not None
            return len(data) == self.width if self.decimal else len(data) <= self.width
        return bool(data) if self.decimal else True

    def plain(self, value: Any) -> bytes:
        """A value's bytes in the PLAIN encoding, without a length."""
        number = as_number(value)
        if self.number is not None:
            return np.array([number], self.number).tobytes()
        if self.decimal:
            width = self.width or (number.bit_length() + 8) // 8
            return int(number).to_bytes(width, "big", signed=True)
        return bytes(value)

    @property
    def _unsigned(self) -> bool:
        logical = self.element.get(10, {}).get(_INTEGER, {})
        return self.element.get(6) in (11, 12, 13, 14) or logical.get(2) is False


@dataclass(frozen=True)
class Page:
    """A page's header and where it lies; its bytes start at `body`."""

    offset: int
    body: int
    header: Fields

    @property
    def kind(self) -> int:
        return int(self.header[1])

    @property
    def is_data(self) -> bool:
        return self.kind in (DATA, DATA_V2)

    @property
    def end(self) -> int:
        return int(self.body + self.header[3])

    @property
    def uncompressed(self) -> int:
        """Its bytes before compression, the header included."""
        return int(self.body - self.offset + self.header[2])

    @property
    def details(self) -> Fields:
        return dict(self.header[_DETAILS[self.kind]])

    @property
    def values(self) -> int:
        return int(self.details[1])

    @property
    def encoding(self) -> int:
        return int(self.details[_ENCODING[self.kind]])


class Anatomy:
    """A whole file in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        self.footer: Fields = Compact(data, self.start).structure()
        self.columns = list(_columns(self.footer[2]))
        self.groups: list[Fields] = self.footer[4]

    @cached_property
    def file(self) -> pq.ParquetFile:
        return pq.ParquetFile(
            pa.BufferReader(self.data),
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        )

    def chunk(self, group: int, column: int) -> Fields:
        """A ColumnChunk."""
        return dict(self.groups[group][1][column])

    def structure(self, offset: int) -> tuple[Fields, int]:
        """The structure at an offset, and the offset behind it."""
        compact = Compact(self.data, offset)
        return compact.structure(), compact.end

    def pages(self, group: int, column: int) -> list[Page]:
        """The pages of a chunk, by walking from the first that the footer names."""
        metadata = self.chunk(group, column)[3]
        at = min(metadata.get(11) or metadata[9], metadata[9])
        end, found = at + metadata[7], list[Page]()
        while at < end:
            header, body = self.structure(at)
            found.append(Page(at, body, header))
            at = found[-1].end
        return found

    def values(self, group: int) -> list[pa.Array]:
        """The values of every field at the top, ordered as Parquet orders them; nulls stay."""
        table = self.file.read_row_group(group, use_threads=False)
        return [_orderable(column) for column in table.columns]


@dataclass(frozen=True)
class Content:
    """What some values of a column are, for what is said of them to be held against.

    `low` and `high` are None where no value has an order: all are null or NaN.
    """

    count: int
    nulls: int
    nans: int
    low: Any
    high: Any
    unencoded: int

    @classmethod
    def of(cls, column: Column, values: pa.Array) -> Content:
        real, nans = values, 0
        if column.floating:
            wrong = np.isnan(values.fill_null(0).to_numpy(zero_copy_only=False))
            nans = int(wrong.sum())
            real = values.filter(pa.array(~wrong))
        some = real.null_count < len(real)
        bounds = pc.min_max(real).as_py() if some else {"min": None, "max": None}
        unencoded = 0
        if column.physical == BYTE_ARRAY and not column.decimal and some:
            unencoded = pc.sum(pc.binary_length(real)).as_py()
        return cls(
            len(values),
            values.null_count,
            nans,
            as_number(bounds["min"]),
            as_number(bounds["max"]),
            unencoded,
        )


def contents(column: Column, values: pa.Array, rows: Sequence[int]) -> list[Content]:
    """The content of neighbouring parts of so many rows each."""
    starts = [0, *accumulate(rows)]
    return [
        Content.of(column, values.slice(start, count))
        for start, count in zip(starts, rows, strict=False)
    ]


def as_number(value: Any) -> Any:
    """An exact decimal as the integer that is stored; anything else as it is."""
    if isinstance(value, Decimal):
        sign, digits, _ = value.as_tuple()
        return int("".join(map(str, digits))) * (-1 if sign else 1)
    return value


def _orderable(column: pa.ChunkedArray) -> pa.Array:
    whole = pa.concat_arrays(column.unify_dictionaries().chunks) if column.num_chunks else None
    if whole is None:
        return pa.array([], column.type)
    kind = whole.type
    if pa.types.is_dictionary(kind):
        whole = whole.dictionary_decode()
        kind = whole.type
    if pa.types.is_temporal(kind):
        return whole.view({32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    if pa.types.is_float16(kind):
        return whole.cast(pa.float32())
    if pa.types.is_string(kind) or pa.types.is_fixed_size_binary(kind):
        return whole.cast(pa.binary())
    return whole.cast(pa.large_binary()) if pa.types.is_large_string(kind) else whole


def _columns(elements: Sequence[Fields]) -> Iterator[Column]:
    open_groups: list[list[Any]] = []  # children that are left, name, flat, top

    def of(element: Fields) -> tuple[str, bool]:
        outer = open_groups[-1]
        name = element[4].decode()
        return (name if len(open_groups) == 1 else f"{outer[1]}.{name}"), len(open_groups) == 1

    open_groups.append([elements[0].get(5, 0), ""])
    top = -1
    for element in elements[1:]:
        while not open_groups[-1][0]:
            open_groups.pop()
        name, outermost = of(element)
        open_groups[-1][0] -= 1
        top += outermost
        repetition = element.get(3, 0)
        if 1 in element:
            flat = outermost and repetition != 2
            yield Column(
                name=name,
                top=top,
                physical=element[1],
                width=element.get(2),
                flat=flat,
                nullable=repetition == 1,
                element=element,
            )
        else:
            open_groups.append([element.get(5, 0), name])
