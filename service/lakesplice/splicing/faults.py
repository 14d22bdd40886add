"""Faults of a file: the part they are in, for errors that name file and part, and the reasons why a
column chunk is rewritten whole instead of page by page, or can't be rewritten at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakesplice.errors import CorruptFileError, UnsupportedError


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, in words: `footer`, `offset index of row group 0, column 3 (price)`."""

    path: str
    part: str

    def within(self, part: str) -> FilePart:
        """Return a smaller part of this one."""
        return FilePart(self.path, f"{part} of {self.part}")

    def corrupt(self, reason: str, **facts: object) -> CorruptFileError:
        """Return the error for a defect found here; the caller raises it."""
        return CorruptFileError(
            f"a Parquet file is damaged: {reason}; restore or rebuild it",
            path=self.path,
            place=self.part,
            **facts,
        )

    def too_large(self, what: str, **facts: object) -> UnsupportedError:
        """Return the error for metadata beyond what is read at once; the caller raises it."""
        return UnsupportedError(
            f"a Parquet file's metadata is too large: {what}; write it as several files",
            path=self.path,
            place=self.part,
            **facts,
        )


class Reason(StrEnum):
    """The values are also labels of a metric. The first ones are found in the footer."""

    NESTED = "nested"
    NO_PAGE_INDEX = "no_page_index"
    LEGACY_LZ4 = "legacy_lz4"
    LZO = "lzo"
    UNKNOWN_CODEC = "unknown_codec"
    UNKNOWN_ENCODING = "unknown_encoding"
    OLD_DELTA_BYTE_ARRAY = "old_delta_byte_array"
    OLD_DATA_PAGE_V2 = "old_data_page_v2"
    EXTERNAL_FILE = "external_file"
    ENCRYPTED = "encrypted"
    LARGE_INDEX = "large_index"
    UNDECODABLE = "undecodable"
    # Found while a chunk is planned or encoded.
    MANY_PAGES = "many_pages"
    ERASED_DICTIONARY = "erased_dictionary"
    DICTIONARY_DECAYED = "dictionary_decayed"
    DICTIONARY_REPEATS = "dictionary_repeats"
    PAGES_OUT_OF_ORDER = "pages_out_of_order"
    OTHER_LAYOUT = "other_layout"
