"""What every reader of the matrix makes of a file, compared with a plain rewrite, bit by bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.parquet_conditions import Condition
from tests.support.parquet_readers import Reader


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same values, bit by bit, under the same names and types."""
    return difference(one, other) is None


def difference(one: pa.Table, other: pa.Table) -> str | None:
    """Say what differs first, or None."""
    if one.schema.names != other.schema.names or one.schema.types != other.schema.types:
        return f"columns {one.schema.remove_metadata()} against {other.schema.remove_metadata()}"
    if one.num_rows != other.num_rows:
        return f"{one.num_rows} rows against {other.num_rows}"
    for name, left, right in zip(one.schema.names, one.columns, other.columns, strict=True):
        a, b = _bits(left), _bits(right)
        if a.equals(b):
            continue
        pairs = enumerate(zip(_shown(left), _shown(right), strict=True))
        wrong = [(at, x, y) for at, (x, y) in pairs if repr(x) != repr(y)]
        if wrong:
            return f"{len(wrong)} values of {name}, first (row, value, value): {wrong[:3]}"
    return None


def _shown(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # Python's times end in the year 9999
        return list(column.cast(pa.int64()).to_pylist())


def _bits(column: pa.ChunkedArray) -> pa.Array:
    """One array in which NaN equals itself and zeros keep their sign."""
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    widths = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    return whole.view(widths[whole.type]) if whole.type in widths else whole


@dataclass
class Matrix:
    """Readers; how many files each could read, and how many it could not even before a splice.

    The same for conditions: `unasked` are those that a reader had no answer to on the source.
    """

    readers: Sequence[Reader] = field(repr=False)
    read: Counter[str] = field(default_factory=Counter, repr=False)
    unread: Counter[str] = field(default_factory=Counter, repr=False)
    asked: Counter[str] = field(default_factory=Counter, repr=False)
    unasked: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def idle(self) -> list[str]:
        """Readers that could read, or answer, less than half of what they were given."""
        pairs = ((self.read, self.unread), (self.asked, self.unasked))
        return [
            name for done, not_done in pairs for name in not_done if not_done[name] > done[name]
        ]

    def differences(
        self, source: Path, path: Path, plain: Path, conditions: Sequence[Condition]
    ) -> list[str]:
        """Read `path` with every reader and return what differs from what it makes of `plain`.

        Both have a column `k` that numbers the rows; conditions are evaluated on `plain` by
        pyarrow. A reader that can't read `source`, of which `path` was made, is left out; only one
        that saw a difference is asked for that.
        """
        # INT96 reaches beyond what nanoseconds do.
        truth = pq.read_table(plain, coerce_int96_timestamp_unit="us")
        found: list[str] = []
        for reader in self.readers:
            expected = attempt(reader, plain)
            told = _told(reader, expected, path, None)
            if told and isinstance(attempt(reader, source), str):
                self.unread[reader.name] += 1
                continue
            self.read[reader.name] += 1
            found += told
            if isinstance(expected, str):
                continue
            for condition in conditions if reader.filters else ():
                if not reader.mistakes(condition):
                    rows = np.flatnonzero(condition.holds(truth))
                    wanted = expected.take(pa.array(rows))
                    found += self._asked(reader, condition, wanted, source, path)
        return found

    def _asked(
        self, reader: Reader, condition: Condition, wanted: pa.Table, source: Path, path: Path
    ) -> list[str]:
        told = _told(reader, wanted, path, condition)
        before = attempt(reader, source, condition) if told else None
        if isinstance(before, str):
            self.unasked[reader.name] += not reader.cannot_skip(before)
            return []
        self.asked[reader.name] += 1
        return told


def attempt(reader: Reader, path: Path, condition: Condition | None = None) -> pa.Table | str:
    """What the reader makes of a file, or the text of its error."""
    try:
        return reader.read(path, condition)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - Rust's panics are no `Exception`
        return f"{type(error).__name__}: {str(error)[:300]}"


def _told(
    reader: Reader,
    expected: pa.Table | str,
    path: Path,
    condition: Condition | None,
) -> list[str]:
    what = "scan" if condition is None else str(condition)
    if isinstance(expected, str):
        return [f"{reader.name}, {what} of the plain rewrite: {expected}"]
    got = attempt(reader, path, condition)
    if condition is not None and not isinstance(got, str):
        expected, got = (_sure(reader, table, condition) for table in (expected, got))
    seen = got if isinstance(got, str) else difference(expected, got)
    if condition is not None and reader.cannot_skip(seen or ""):
        return []
    return [] if seen is None else [f"{reader.name}, {what}: {seen}"]


def _sure(reader: Reader, table: pa.Table, condition: Condition) -> pa.Table:
    unsure = condition.unsure(table, zeros=reader.zeros)
    return table.filter(pa.array(~unsure)) if unsure.any() else table


def used(readers: Sequence[Reader]) -> Iterator[Matrix]:
    """Readers that must read most of the files they are given."""
    matrix = Matrix(readers)
    yield matrix
    print("unread:", dict(matrix.unread), "unasked:", dict(matrix.unasked))
    assert not matrix.idle
