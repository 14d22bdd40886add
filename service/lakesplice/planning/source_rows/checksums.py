"""Checksums of rows that a database and the lake compute in the same way, and their sums by bucket.

    row text   per column `N,` for NULL, `text,`, or of characters `bytes:text,`: no two rows have
               the same, since digits and hexadecimal have no comma
    hash       the first 64 bits of the row text's MD5; with `quick` its CRC32, times that of the
               key's row text, made odd
    bucket     the CRC32 of the key's row text, of which the lowest 12 bits count

A bucket's sum is the number of its rows and the XOR of their hashes, or with `quick` their sum. If
two equally long rows swap a value, the XOR of their CRC32 never changes, and once in ten thousand
times their plain sum doesn't either; hence the product.
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

from lakesplice.model.arrays import Integers, Unsigned
from lakesplice.planning.source_rows.canonical_texts import canonical_texts
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm

BUCKETS = 4096
_HASH_DIGITS = 16  # hexadecimal ones: 64 bits
_MD5_DIGITS = 32
_WORD = 1 << 64
_VALUE_OF_DIGIT = np.zeros(256, np.uint8)
_VALUE_OF_DIGIT[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


@dataclass(frozen=True)
class Compared:
    """The compared columns, with the source's names, and those of the key; `quick` chooses the
    hash.
    """

    columns: tuple[ReadColumn, ...]
    key: tuple[ReadColumn, ...]
    quick: bool = False

    @property
    def bucket_sql(self) -> str:
        """The SQL expression of a row's bucket."""
        return f"crc32({row_text_sql(self.key)})&{BUCKETS - 1}"

    @property
    def hash_sql(self) -> str:
        """The SQL expression of a row's hash; NULL if its text is too long for the server."""
        text = row_text_sql(self.columns)
        if not self.quick:
            return md5_sql(text)
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
        return bucket_of(row_texts(rows, self.key))

    def hashes(self, rows: pa.Table) -> Unsigned:
        """Return each row's hash."""
        texts = row_texts(rows, self.columns)
        if not self.quick:
            return md5_words(texts)
        return _crc32(texts) * (_crc32(row_texts(rows, self.key)) | np.uint64(1))


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
        word = np.uint64(total % _WORD)
        self.counts[bucket] += count
        if self._quick:
            self.totals[bucket] += word
        else:
            self.totals[bucket] ^= word

    def differing(self, other: BucketSums) -> list[int]:
        """Return the buckets whose sums differ, ascending."""
        different = (self.counts != other.counts) | (self.totals != other.totals)
        return [int(bucket) for bucket in np.flatnonzero(different)]


def row_text_sql(columns: Sequence[ReadColumn]) -> str:
    """Return the SQL expression of a row's text."""
    return f"concat({','.join(_cell_sql(column) for column in columns)})"


def row_texts(rows: pa.Table, columns: Sequence[ReadColumn]) -> pl.Series:
    """Return the same texts for rows of the lake; their columns have the source's names."""
    series, parts = {}, []
    for at, column in enumerate(columns):
        name = str(at)
        texts = canonical_texts(column, rows.column(column.name).combine_chunks())
        part = pl.col(name)
        if column.form is TextForm.CHARACTERS:
            part = pl.concat_str([part.str.len_bytes().cast(pl.String), part], separator=":")
        series[name] = texts
        parts.append(part.fill_null("N") if texts.null_count() else part)
    # One expression: joined column by column, the texts would be copied for each.
    whole = pl.concat_str([*parts, pl.lit("")], separator=",")
    return pl.DataFrame(series).select(whole).to_series()


def md5_sql(text: str) -> str:
    """Return the SQL expression of the first 64 bits of a text's MD5."""
    return f"cast(conv(left(md5({text}),{_HASH_DIGITS}),16,10) as unsigned)"


def md5_words(texts: pl.Series) -> Unsigned:
    """Return the same numbers for texts of the lake, none of which is null."""
    digests = pl.DataFrame({"t": texts}).select(plh.col("t").nchash.md5()).to_series()
    digits = digests.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.binary(_MD5_DIGITS))
    octets = np.frombuffer(digits.buffers()[1], np.uint8, _MD5_DIGITS * len(digits))
    halves = _VALUE_OF_DIGIT[octets.reshape(-1, _MD5_DIGITS)[:, :_HASH_DIGITS]]
    words = np.ascontiguousarray(halves[:, 0::2] << 4 | halves[:, 1::2])
    return words.view(">u8").ravel().astype(np.uint64)


def bucket_of(key_texts: pl.Series) -> Integers:
    """Return the bucket of each key, given the keys' row texts."""
    buckets: Integers = (_crc32(key_texts) & np.uint64(BUCKETS - 1)).astype(np.int64)
    return buckets


def _crc32(texts: pl.Series) -> Unsigned:
    octets: Iterable[bytes] = texts.cast(pl.Binary).to_list()
    return np.fromiter(map(crc32, octets), np.uint64, len(texts))


def _cell_sql(column: ReadColumn) -> str:
    """The SQL expression of a cell. A text that is too long is NULL, and so is its row's text."""
    if column.form in (TextForm.OCTETS, TextForm.GEOMETRY):
        return f"if({column.plain_sql} is null,'N,',concat({column.sql},','))"
    if column.form is not TextForm.CHARACTERS:
        return f"ifnull({column.sql},'N'),','"
    text = column.sql
    return f"if({column.plain_sql} is null,'N,',concat(length({text}),':',{text},','))"
