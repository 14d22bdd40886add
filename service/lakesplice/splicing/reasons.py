"""Why a column chunk cannot be spliced page by page and is rewritten whole, or not at all."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Found in the footer alone; the words are also a metric's label."""

    NESTED = "nested"
    NO_PAGE_INDEX = "no_page_index"
    LEGACY_LZ4 = "legacy_lz4"
    LZO = "lzo"
    UNKNOWN_CODEC = "unknown_codec"
    UNKNOWN_ENCODING = "unknown_encoding"
    OLD_DELTA_BYTE_ARRAY = "old_delta_byte_array"
    EXTERNAL_FILE = "external_file"
    ENCRYPTED = "encrypted"
