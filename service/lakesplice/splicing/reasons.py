"""Why a column chunk cannot be spliced page by page and is rewritten whole, or not at all."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The words are also a metric's label. The first ones are found in the footer alone."""

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
