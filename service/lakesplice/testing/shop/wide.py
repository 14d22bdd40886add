"""Millions of events of the wide table for benchmarks, made several times as fast as the
simulator's.

Every value depends only on (seed, row, version), so the whole state is one number per row, and the
truth is computed column by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakesplice.model.arrays import Integers, Unsigned
from lakesplice.model.moments import EpochMs
from lakesplice.model.types import Primitive
from lakesplice.testing.shop.binlog import Binlog, SimulatedClock
from lakesplice.testing.shop.columns import Column, decimal
from lakesplice.testing.shop.events import Event, EventWriter, Image
from lakesplice.testing.shop.tables import WIDE

Strings = npt.NDArray[np.object_]

_START_MS: Final = 1_772_000_000_000
_BLOCK_ROWS: Final = 8_192
_STATEMENT_ROWS: Final = 100
_CENTS_MAX: Final = 100_000
_INTEGER_MAX: Final = 100_000
_DECIMAL_BYTES: Final = 16
_VERSIONED: Final = 2  # the last columns, which an update changes


class WideTable:
    """`rows` rows with keys 1 to `rows`, and any number of updates.

    An update changes two of the 23 columns. Iterating advances the state, so exhaust an iterator
    before calling `truth`. Not thread-safe.
    """

    def __init__(
        self,
        rows: int,
        *,
        table: str = WIDE.name,
        seed: int = 0,
        server: str = "shop",
        database: str = "shop",
        with_schemas: bool = False,
    ) -> None:
        self.spec = replace(WIDE, name=table)
        self._seed = np.uint64(seed)
        self._versions = np.zeros(rows + 1, dtype=np.int64)
        clock = SimulatedClock(EpochMs(_START_MS), Random(seed))  # noqa: S311  a run repeats
        self._binlog = Binlog(clock, file_bytes=1 << 26)
        self._writer = EventWriter(self.spec, server, database, "wide", with_schemas=with_schemas)
        encode = decimal("", 7, 2).encode
        self._cents_texts = np.array([encode(cents) for cents in range(_CENTS_MAX)], dtype=object)
        names = [f'"{column.name}":%s' for column in WIDE.columns]
        self._steady_template = "{" + ",".join(names[:-_VERSIONED])
        self._versioned_template = "," + ",".join(names[-_VERSIONED:]) + "}"

    @property
    def topic(self) -> str:
        """The table's topic."""
        return self._writer.topic

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._versions) - 1

    def snapshot(self, first: int = 1, last: int | None = None) -> Iterator[Event]:
        """Yield snapshot events of rows `first` to `last`, both included."""
        ids = np.arange(first, (self.rows if last is None else last) + 1, dtype=np.int64)
        for block in _blocks(ids):
            steady, present = self._steady(block), self._versioned(block)
            for key, head, tail in zip(block.tolist(), steady, present, strict=True):
                moment = self._binlog.snapshot()
                yield self._writer.change("r", None, Image((key,), head + tail), moment, 0)

    def updates(self, ids: Integers) -> Iterator[Event]:
        """Yield one update per key in `ids`, in order; a key may occur several times."""
        for block in _blocks(ids):
            if len(np.unique(block)) < len(block):
                for one in block:
                    yield from self._update(np.array([one], dtype=np.int64))
            else:
                yield from self._update(block)

    def truth(self, first: int = 1, last: int | None = None) -> pa.Table:
        """Return the present rows `first` to `last`, sorted by key, in the lake's types."""
        ids = np.arange(first, (self.rows if last is None else last) + 1, dtype=np.int64)
        arrays = [_to_arrow(column, self._values(i, ids)) for i, column in enumerate(WIDE.columns)]
        return pa.Table.from_arrays(arrays, schema=WIDE.arrow)

    def _update(self, block: Integers) -> Iterator[Event]:
        steady, old = self._steady(block), self._versioned(block)
        self._versions[block] += 1
        new = self._versioned(block)
        images = zip(block.tolist(), steady, old, new, strict=True)
        for number, (key, head, before, after) in enumerate(images):
            row = number % _STATEMENT_ROWS
            if row == 0:
                self._binlog.begin()
                moment = self._binlog.statement(_STATEMENT_ROWS)
            key_values = (key,)
            yield self._writer.change(
                "u", Image(key_values, head + before), Image(key_values, head + after), moment, row
            )

    def _values(self, index: int, ids: Integers) -> Integers:
        """The values of one column for these rows, as `columns` describes them."""
        column = WIDE.columns[index]
        if index == 0:
            return ids
        if column.type.kind is Primitive.TIMESTAMP:
            return _START_MS * 1000 + self._versions[ids] * 1_000_000 + ids
        versions = self._versions[ids] if index >= len(WIDE.columns) - _VERSIONED else 0
        limit = _CENTS_MAX if column.type.kind is Primitive.DECIMAL else _INTEGER_MAX
        seeds = ids * 64 + index + versions * np.int64(1 << 40)
        return (_mixed(seeds.astype(np.uint64) ^ self._seed) % np.uint64(limit)).astype(np.int64)

    def _texts(self, index: int, ids: Integers) -> list[object]:
        values = self._values(index, ids)
        if WIDE.columns[index].type.kind is Primitive.DECIMAL:
            texts: list[object] = self._cents_texts[values].tolist()
            return texts
        numbers: list[object] = values.tolist()
        return numbers

    def _steady(self, ids: Integers) -> list[str]:
        columns = [self._texts(index, ids) for index in range(len(WIDE.columns) - _VERSIONED)]
        template = self._steady_template
        return [template % values for values in zip(*columns, strict=True)]

    def _versioned(self, ids: Integers) -> list[str]:
        count = len(WIDE.columns)
        columns = [self._texts(index, ids) for index in range(count - _VERSIONED, count)]
        template = self._versioned_template
        return [template % values for values in zip(*columns, strict=True)]


def _blocks(ids: Integers) -> Iterator[Integers]:
    for start in range(0, len(ids), _BLOCK_ROWS):
        yield ids[start : start + _BLOCK_ROWS]


def _mixed(values: Unsigned) -> Unsigned:
    """Mix the bits of numbers with the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _to_arrow(column: Column, values: Integers) -> pa.Array:
    if column.type.kind is not Primitive.DECIMAL:
        return pa.array(values).cast(column.type.arrow)
    # Never negative here, so the upper half of each 128-bit number is zero.
    halves = np.zeros((len(values), _DECIMAL_BYTES // 8), dtype="<i8")
    halves[:, 0] = values
    return pa.Array.from_buffers(column.type.arrow, len(values), [None, pa.py_buffer(halves)])
