"""Reads a CSV file block by block, so that only a part of it is in memory.

Arrow finds the rows in a block, and reads up to 32 blocks ahead. A file has a header. NULL is
nothing or `\\N`, without quotes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pyarrow as pa
from pyarrow import csv

from lakesplice.errors import UsageError
from lakesplice.planning.source_rows.csv_dialect import CsvDialect
from lakesplice.storage.stores import AnyStore

BLOCK_BYTES = 2 << 20
_CHECKED_BYTES = 1 << 20
# Each part is a commit, which costs as much as thousands of rows.
_BLOCKS_OF_PART = 8
_NAMES_BYTES = 1 << 20


def require_dialect(store: AnyStore, path: str) -> None:
    """Check that a file is written as `CsvRows` reads it; raise `UsageError` if not. Blocks: the
    file is read whole.
    """
    dialect = CsvDialect()
    with closing(store.open(path)) as file:
        while data := file.read(_CHECKED_BYTES):
            dialect.feed(data)
    if flaw := dialect.flaw():
        raise UsageError(f"a CSV file can't be read exactly: {flaw}", path=path)


class CsvRows:
    """The rows of one file, in one pass: `at` is the number of the next row. Not thread-safe.

    Raises `UsageError` if the file isn't CSV, or if a row is longer than a block.
    """

    def __init__(self, store: AnyStore, path: str, block_bytes: int = BLOCK_BYTES) -> None:
        """Open a file. Blocks."""
        self.path, self.at = path, 0
        self._left: pa.RecordBatch | None = None
        with ExitStack() as opened, _naming_the_file(path):
            with store.open(path) as file:
                names = csv.open_csv(file, _read(max(block_bytes, _NAMES_BYTES)), _LINES).schema
            # In a file of one column an empty line is a row: NULL, or a text without its quotes.
            lines = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1)
            values = csv.ConvertOptions(
                column_types=dict.fromkeys(names.names, pa.string()),
                null_values=["", "\\N"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            self._file = opened.enter_context(store.open(path))
            self._reader = csv.open_csv(self._file, _read(block_bytes), lines, values)
            opened.pop_all()  # it was opened, so `close` closes it

    def stops(self) -> Iterator[int]:
        """Yield the number of the first row behind each part, up to the file's end. Blocks."""
        blocks = 0
        while (batch := self._block()) is not None:
            self.at += batch.num_rows
            blocks += 1
            if not blocks % _BLOCKS_OF_PART:
                yield self.at
        if blocks % _BLOCKS_OF_PART:
            yield self.at

    def take(self, first: int, stop: int) -> pa.Table:
        """Return the rows from `first` to before `stop`; rows before them are passed over. `first`
        isn't below `at`. Blocks.
        """
        taken = []
        while self.at < stop:
            batch = self._left or self._block()
            if batch is None:
                raise UsageError(
                    "a file has fewer rows than when filling began; give --again", path=self.path
                )
            count = min(batch.num_rows, stop - self.at)
            passed = min(count, max(0, first - self.at))
            taken.append(batch.slice(passed, count - passed))
            self._left = batch.slice(count) if count < batch.num_rows else None
            self.at += count
        return pa.Table.from_batches(taken, self._reader.schema)

    def _block(self) -> pa.RecordBatch | None:
        with _naming_the_file(self.path), suppress(StopIteration):
            return self._reader.read_next_batch()
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_LINES = csv.ParseOptions(newlines_in_values=True)


def _read(block_bytes: int) -> csv.ReadOptions:
    return csv.ReadOptions(use_threads=False, block_size=block_bytes)


@contextmanager
def _naming_the_file(path: str) -> Iterator[None]:
    """Name the file in an error of Arrow's."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise UsageError(
            "a file isn't CSV, or has a row that is too long: write Parquet instead",
            path=path,
            cause=str(error),
        ) from error
