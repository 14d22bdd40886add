"""Checksums of rows that a database and the lake compute in the same way, and their sums by bucket.

    row text   the columns' texts with commas between them, `N` for NULL; of characters the length
               in bytes stands before, and a NULL's are `N` and an empty text. No two rows have the
               same, since digits and hexadecimal have no comma
    hash       the first 64 bits of the row text's SHA-1; with `quick` its CRC32, times an odd
               number that is computed from the key
    bucket     12 bits that are computed from the key

A bucket's sum is the number of its rows and the XOR of their hashes, or with `quick` their sum. If
two equally long rows swap a value, the XOR of their CRC32 never changes, and once in ten thousand
times their plain sum doesn't either; hence the product. From a key that is
one whole number they are computed as a product, which costs both sides less, and otherwise as the
CRC32 of its row text.
SHA-1 is chosen for its speed: processors have instructions for it. Nobody attacks these sums.
docs/verify.md explains why there are buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import polars as pl
import polars_hash as plh
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Unsigned
from lakesplice.model.types import WHOLE_NUMBERS
from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm

BUCKETS = 4096
_HASH_DIGITS = 16  # hexadecimal ones: 64 bits
_SHA1_DIGITS = 40
_WORD = 1 << 64
_HALF = (1 << 32) - 1
_FACTOR = 2_654_435_761  # Knuth's, 2**32 divided by the golden ratio
# The value of two hexadecimal digits, by their two bytes as a little-endian number.
_VALUE_OF_PAIR = np.zeros(1 << 16, np.uint8)
_VALUE_OF_PAIR[[int.from_bytes(b"%02x" % n, "little") for n in range(256)]] = np.arange(256)


@dataclass(frozen=True)
class Compared:
    """The compared columns, with the source's names, and those of the key; `quick` chooses the
    hash.
    """

    columns: tuple[ReadColumn, ...]
    key: tuple[ReadColumn, ...]
    quick: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([(column.name, column.type.arrow) for column in self.columns])

    @property
    def bucket_sql(self) -> str:
        """The SQL expression of a row's bucket."""
        if _is_whole_number(self.key):
            return f"({_mixed_sql(self.key)}>>20)&{BUCKETS - 1}"
        return f"crc32({row_text_sql(self.key)})&{BUCKETS - 1}"

    @property
    def hash_sql(self) -> str:
        """The SQL expression of a row's hash; NULL if its text is too long for the server."""
        text = row_text_sql(self.columns)
        if not self.quick:
            return f"cast(conv(left(sha1({text}),{_HASH_DIGITS}),16,10) as unsigned)"
        if _is_whole_number(self.key):
            return f"crc32({text})*((({_mixed_sql(self.key)}>>16)&{_HALF})|1)"
        return f"crc32({text})*(crc32({row_text_sql(self.key)})|1)"

    @property
    def sums_sql(self) -> str:
        """The SQL expressions of a bucket's sum. A row whose hash is NULL only adds to the number
        of rows, so that the bucket differs and its rows are compared.
        """
        total = f"sum({self.hash_sql})" if self.quick else f"bit_xor({self.hash_sql})"
        return f"{self.bucket_sql} b,count(*),{total}"

    def buckets(self, rows: pa.Table) -> Integers:
        """Return each row's bucket; `rows` has the source's names."""
        if _is_whole_number(self.key):
            number = _mixed(rows, self.key) >> np.uint64(20)
        else:
            number = _crc32(row_texts(rows, self.key))
        buckets: Integers = (number & np.uint64(BUCKETS - 1)).astype(np.int64)
        return buckets

    def hashes(self, rows: pa.Table) -> Unsigned:
        """Return each row's hash."""
        texts = row_texts(rows, self.columns)
        if not self.quick:
            return _sha1_words(texts)
        if _is_whole_number(self.key):
            factor = (_mixed(rows, self.key) >> np.uint64(16)) & np.uint64(_HALF)
        else:
            factor = _crc32(row_texts(rows, self.key))
        return _crc32(texts) * (factor | np.uint64(1))


class BucketSums:
    """For each bucket the number of rows and the sum of their hashes; not thread-safe."""

    def __init__(self, quick: bool = False) -> None:
        self.counts = np.zeros(BUCKETS, np.int64)
        self.totals = np.zeros(BUCKETS, np.uint64)
        self._quick = quick

    def add(self, buckets: Integers, hashes: Unsigned) -> None:
        """Add rows."""
        self.counts += np.bincount(buckets, minlength=BUCKETS)
        if self._quick:
            np.add.at(self.totals, buckets, hashes)
        else:
            np.bitwise_xor.at(self.totals, buckets, hashes)

    def add_sum(self, bucket: int, count: int, total: int) -> None:
        """Add the sum of some rows of a bucket."""
        self.counts[bucket] += count
        before = int(self.totals[bucket])
        self.totals[bucket] = (before + total) % _WORD if self._quick else before ^ total

    def differing(self, other: BucketSums) -> list[int]:
        """Return the buckets whose sums differ, ascending."""
        different = (self.counts != other.counts) | (self.totals != other.totals)
        return [int(bucket) for bucket in np.flatnonzero(different)]


def row_text_sql(columns: Sequence[ReadColumn]) -> str:
    """Return the SQL expression of a row's text; NULL if it is too long for the server."""
    if any(_may_be_too_long(column) for column in columns):
        # CONCAT_WS, which is cheaper, leaves out what is NULL.
        cells = ",',',".join(part for column in columns for part in _cells_sql(column))
        return f"concat({cells})"
    return f"concat_ws(',',{','.join(part for column in columns for part in _cells_sql(column))})"


def row_texts(rows: pa.Table, columns: Sequence[ReadColumn]) -> pl.Series:
    """Return the same texts for rows of the lake; their columns have the source's names."""
    parts = []
    for column in columns:
        texts = canonical_texts(column, rows.column(column.name).combine_chunks())
        if column.form is TextForm.CHARACTERS:
            parts.append(pc.binary_length(texts).cast(pa.large_string()))
            texts = texts.fill_null("") if texts.null_count else texts
        parts.append(texts)
    whole = pc.binary_join_element_wise(
        *parts, pa.scalar(",", pa.large_string()), null_handling="replace", null_replacement="N"
    )
    return pl.Series(whole, dtype=pl.String)


def _sha1_words(texts: pl.Series) -> Unsigned:
    """Return the first 64 bits of each text's SHA-1; no text is null."""
    digests = pl.DataFrame({"t": texts}).select(plh.col("t").nchash.sha1()).to_series()
    digits = digests.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.binary(_SHA1_DIGITS))
    octets = np.frombuffer(digits.buffers()[1], np.uint8, _SHA1_DIGITS * len(digits))
    first = np.ascontiguousarray(octets.reshape(-1, _SHA1_DIGITS)[:, :_HASH_DIGITS])
    words: Unsigned = _VALUE_OF_PAIR[first.view("<u2")].view(">u8").ravel().astype(np.uint64)
    return words


def _crc32(texts: pl.Series) -> Unsigned:
    octets: Iterable[bytes] = texts.cast(pl.Binary).to_list()
    return np.fromiter(map(crc32, octets), np.uint64, len(texts))


def _is_whole_number(key: Sequence[ReadColumn]) -> bool:
    return len(key) == 1 and key[0].type.kind in WHOLE_NUMBERS and not key[0].bits


def _mixed_sql(key: Sequence[ReadColumn]) -> str:
    """The SQL expression of a number of 64 bits for a key that is a whole number. Keys in sequence
    or with equal steps spread over its middle bits. It doesn't overflow, which is an error in SQL.
    """
    number = f"({key[0].sql})"
    return f"((({number}^({number}>>32))&{_HALF})*{_FACTOR})"


def _mixed(rows: pa.Table, key: Sequence[ReadColumn]) -> Unsigned:
    """Return the same for rows of the lake. SQL's operators on bits take negative numbers modulo
    2**64.
    """
    values = rows.column(key[0].name).combine_chunks().cast(pa.int64()).fill_null(0)
    numbers: Unsigned = values.to_numpy(zero_copy_only=False).view(np.uint64)
    mixed: Unsigned = (numbers ^ (numbers >> np.uint64(32))) & np.uint64(_HALF)
    return mixed * np.uint64(_FACTOR)


def _may_be_too_long(column: ReadColumn) -> bool:
    """Whether a cell may be NULL because the server refuses to make its text."""
    converted = column.form is TextForm.CHARACTERS and column.sql != column.plain_sql
    return converted or column.form in (TextForm.OCTETS, TextForm.GEOMETRY)


def _cells_sql(column: ReadColumn) -> tuple[str, ...]:
    """The SQL expressions of a column's cells: of characters the length, then the text."""
    text, plain = column.sql, column.plain_sql
    if column.form is not TextForm.CHARACTERS:
        if not column.optional:
            return (text,)
        if _may_be_too_long(column):
            return (f"if({plain} is null,'N',{text})",)
        return (f"ifnull({text},'N')",)
    length = f"length({text})"
    if not column.optional:
        return length, text
    if _may_be_too_long(column):
        return f"if({plain} is null,'N',{length})", f"if({plain} is null,'',{text})"
    return f"ifnull({length},'N')", f"ifnull({text},'')"
