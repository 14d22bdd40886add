"""Searches every byte of files for values, and reports in which files each was found.

    python -m lakesplice.apps.erasing.byte_search FOLDER VALUES

FOLDER is searched with all folders in it. VALUES is a file with a value per line. A line that
starts with `hex:` has bytes in hexadecimal digits. A line such as `column:id=7` counts only as a
whole value of the column `id` or, if the value isn't a number, as a whole text in the spellings of
these formats. This module knows nothing of Lakesplice, so that anybody can repeat or replace the
search:

- the bytes of each file;
- for a Parquet file also the uncompressed bytes of each page and dictionary, every column's values,
  and the bounds in its footer;
- for an Avro file also every column's values.

A value is searched as its text in UTF-8 and as JSON writes it; a whole number also in eight bytes,
in both orders. Texts of less than four bytes and numbers below 2^24 occur in any file by chance:
they count only as whole values of a column.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.apps.erasing.parquet_bytes import page_bytes

_BYTES_MIN = 4
_NUMBER_MIN = 1 << 24
_NUMBER_MAX = 1 << 63
_BLOCK = 1 << 24
_ORDERS: tuple[Literal["little", "big"], ...] = ("little", "big")
# No value crosses the end of a page.
_BETWEEN = bytes(8)
_HEX = "hex:"
_COLUMN = "column:"


@dataclass(frozen=True)
class SearchedValues:
    """The values that are searched for."""

    values: Sequence[str]
    # By their first bytes, then by their lengths: one look-up per length finds the value.
    _forms: dict[int, dict[int, dict[bytes, str]]] = field(init=False, default_factory=dict)
    _columns: dict[str, dict[str, str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for value in self.values:
            column, text = _parts(value)
            self._columns.setdefault(column, {})[text] = value
            for form in _whole_forms(text) if column else _forms_of(value):
                start = int.from_bytes(form[:_BYTES_MIN], "little")
                self._forms.setdefault(start, {}).setdefault(len(form), {})[form] = value

    def found_in(self, path: str, data: bytes) -> set[str]:
        """Return the values that occur in a file, given its name and content."""
        found = set(self.in_bytes(data))
        if path.endswith(".parquet"):
            file = pq.ParquetFile(io.BytesIO(data))
            found |= set(self.in_bytes(_BETWEEN.join(page_bytes(data, file))))
            # Bounds that are cut to a prefix, and nested columns, are covered by the search of the
            # bytes.
            for batch in file.iter_batches():
                found |= self.in_columns(pl.DataFrame(pa.table(batch)))
        if path.endswith(".avro"):
            found |= self.in_columns(pl.read_avro(io.BytesIO(data)))
        return found

    def in_bytes(self, data: bytes) -> Iterator[str]:
        """Yield the values whose spellings occur in some bytes; a value may be yielded several
        times.
        """
        starts = np.array(sorted(self._forms), np.uint32)
        if not len(starts):
            return
        for begin in range(0, max(len(data) - _BYTES_MIN + 1, 0), _BLOCK):
            block = np.frombuffer(data, np.uint8, offset=begin)[: _BLOCK + _BYTES_MIN - 1]
            words = np.zeros(len(block) - _BYTES_MIN + 1, np.uint32)
            for at in range(_BYTES_MIN):
                words |= block[at : len(words) + at].astype(np.uint32) << np.uint32(8 * at)
            place = np.searchsorted(starts, words)
            place[place == len(starts)] = 0
            for at in np.flatnonzero(starts[place] == words).tolist():
                for size, forms in self._forms[int(words[at])].items():
                    value = forms.get(data[begin + at : begin + at + size])
                    if value is not None:
                        yield value

    def in_columns(self, rows: pl.DataFrame) -> set[str]:
        """Return the values that are whole values of columns."""
        found: set[str] = set()
        for column in rows:
            if column.dtype.is_nested():
                continue
            if column.dtype == pl.Binary:
                texts = pl.Series([one and one.decode(errors="replace") for one in column])
            else:
                texts = column.cast(pl.String)
            here = set(texts.unique().to_list())
            wanted = {**self._columns.get("", {}), **self._columns.get(column.name, {})}
            found |= {value for text, value in wanted.items() if text in here}
        return found


def _parts(value: str) -> tuple[str, str]:
    """The column in which a value is searched ("" for any), and its text there."""
    if not value.startswith(_COLUMN):
        return "", value
    column, _, text = value.removeprefix(_COLUMN).partition("=")
    return column, text


def _forms_of(value: str) -> set[bytes]:
    if value.startswith(_HEX):
        return {bytes.fromhex(value.removeprefix(_HEX))}
    forms = {value.encode(), json.dumps(value)[1:-1].encode()}
    number = _number(value)
    if number is None:
        return {form for form in forms if len(form) >= _BYTES_MIN}
    if not _NUMBER_MIN <= abs(number) < _NUMBER_MAX:
        return set()
    return forms | {number.to_bytes(8, order, signed=True) for order in _ORDERS}


def _whole_forms(text: str) -> set[bytes]:
    """The spellings of a whole text: in JSON, and after its length as in Parquet and in Avro."""
    if _number(text) is not None:
        return set()
    data = text.encode()
    forms = {json.dumps(text).encode(), len(data).to_bytes(4, "little") + data}
    if 3 <= len(data) < 64:
        forms.add(bytes([2 * len(data)]) + data)
    return forms


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def search(files: Iterable[tuple[str, bytes]], values: Sequence[str]) -> dict[str, set[str]]:
    """Return for each file the values that it has, only if it has any; files are names and
    contents.

    Memory holds one file, compressed and uncompressed.
    """
    looking = SearchedValues(values)
    found = {path: looking.found_in(path, data) for path, data in files}
    return {path: has for path, has in found.items() if has}


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a folder and of all folders in it, hidden ones included."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def values_of(text: str) -> list[str]:
    """Return the values of a file that has one per line."""
    # `splitlines` also ends a line at characters that values may contain, such as U+2028.
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return list(dict.fromkeys(line for line in lines if line))


def main(folder: str, values: str) -> int:
    """Search a folder and print what was found; return 1 if anything was."""
    wanted = values_of(Path(values).read_text(encoding="utf-8"))
    counts = {"files": 0, "bytes": 0}

    def counted() -> Iterator[tuple[str, bytes]]:
        for path, data in files_in(Path(folder)):
            counts["files"] += 1
            counts["bytes"] += len(data)
            yield path, data

    found = search(counted(), wanted)
    for path, has in found.items():
        sys.stdout.write(f"{path}: {len(has)} of the values\n")
    sys.stdout.write(
        f"{len(wanted)} values searched in {counts['files']} files with {counts['bytes']} bytes:"
        f" {len(set().union(*found.values()))} found in {len(found)} files\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
