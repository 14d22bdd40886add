"""Finds the options with which pyarrow writes a file like a given one.

They keep the codec, dictionary, encoding and statistics of each column, the rows of a page, page
index and checksums, the format's version, the width of decimals, INT96, the sort order and all
metadata. No file records a compression level. Types that pyarrow can't write (an enum, an interval,
geometry) would become plain bytes; `lost_by` finds them before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

ORIGINAL_CREATED_BY = b"original.created.by"

_ARROW_SCHEMA = b"ARROW:schema"
_CODECS = frozenset(("SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"))
_LZ4_NAMES = frozenset(("LZ4_RAW", "LZ4_HADOOP"))
# pyarrow's own names for the encodings that it accepts for columns without a dictionary.
_ENCODINGS = (
    "DELTA_BINARY_PACKED",
    "BYTE_STREAM_SPLIT",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
)
_NATIVE_BITS = 32
_NANOSECONDS = "nanoseconds"


def options_like(
    file: pq.ParquetFile,
    *,
    rows_per_page: int | None,
    checksums: bool,
    pages_v2: bool,
) -> dict[str, Any]:
    """Return the arguments of a `pq.ParquetWriter` that writes as `file` was written.

    The caller passes what the footer doesn't say: `rows_per_page` (None for the writer's default),
    whether pages have checksums, and whether they are of version 2.
    """
    footer = file.metadata
    leaves = [file.schema.column(at) for at in range(len(file.schema))]
    kinds = [_logical(leaf) for leaf in leaves]
    by_leaf = [list(_chunks(footer, at)) for at in range(len(leaves))]
    dictionary = [c[0].path_in_schema for c in by_leaf if any(o.has_dictionary_page for o in c)]
    statistics = [c[0].path_in_schema for c in by_leaf if any(o.is_stats_set for o in c)]
    limits = {} if rows_per_page is None else {"max_rows_per_page": rows_per_page}
    return {
        "version": _version(footer, kinds),
        "compression": {c[0].path_in_schema: _codec(c[0].compression) for c in by_leaf if c}
        or "none",
        "use_dictionary": dictionary or False,
        "column_encoding": dict(_encodings(by_leaf, leaves, dictionary)) or None,
        "write_statistics": statistics or False,
        "store_schema": _ARROW_SCHEMA in (footer.metadata or {}),
        "store_decimal_as_integer": any(
            kind.get("Type") == "Decimal" and leaf.physical_type in ("INT32", "INT64")
            for leaf, kind in zip(leaves, kinds, strict=True)
        ),
        "use_deprecated_int96_timestamps": any(leaf.physical_type == "INT96" for leaf in leaves),
        "write_time_adjusted_to_utc": any(
            kind.get("Type") == "Time" and kind.get("isAdjustedToUTC") for kind in kinds
        ),
        # Otherwise the elements of lists would be renamed.
        "use_compliant_nested_type": False,
        "data_page_version": "2.0" if pages_v2 else "1.0",
        "write_page_index": any(one.has_offset_index for chunks in by_leaf for one in chunks),
        "write_page_checksum": checksums,
        **limits,
    }


def sorting_like(file: pq.ParquetFile, edited: Mapping[str, object]) -> list[Any] | None:
    """Return the sort order that row groups declare; None if an edit may have broken it."""
    footer = file.metadata
    declared = {footer.row_group(at).sorting_columns for at in range(footer.num_row_groups)}
    if len(declared) != 1 or not (order := declared.pop()):
        return None
    paths = (file.schema.column(one.column_index).path for one in order)
    return None if any(path.partition(".")[0] in edited for path in paths) else list(order)


def lost_by(source: pq.ParquetFile, written: pq.ParquetSchema) -> list[str]:
    """Return the columns whose type would be lost, each with the type it has and the type it would
    get.

    A decimal may change its width, since every reader reads all widths.
    """
    before = [source.schema.column(at) for at in range(len(source.schema))]
    after = [written.column(at) for at in range(len(written))]
    if len(before) != len(after):
        return [f"{len(before)} columns become {len(after)}"]
    return [
        f"{was.path}: {_described(was)} becomes {_described(now)}"
        for was, now in zip(before, after, strict=True)
        if _described(was) != _described(now)
    ]


def _described(leaf: pq.ColumnSchema) -> str:
    kind = _logical(leaf)
    physical = "" if kind.get("Type") == "Decimal" else leaf.physical_type
    width = leaf.length if physical == "FIXED_LEN_BYTE_ARRAY" else ""
    return f"{physical}{width} {json.dumps(kind, sort_keys=True)}"


def _logical(leaf: pq.ColumnSchema) -> dict[str, Any]:
    kind: dict[str, Any] = json.loads(leaf.logical_type.to_json())
    if kind.get("Type") == "Int" and kind["isSigned"] and kind["bitWidth"] >= _NATIVE_BITS:
        return {"Type": "None"}  # says no more than the physical type does
    return {name: value for name, value in kind.items() if "converted_type" not in name}


def _chunks(footer: pq.FileMetaData, leaf: int) -> Iterator[pq.ColumnChunkMetaData]:
    return (footer.row_group(group).column(leaf) for group in range(footer.num_row_groups))


def _codec(name: str) -> str:
    known = "LZ4" if name in _LZ4_NAMES else name
    return known.lower() if known in _CODECS else "none"


def _encodings(
    by_leaf: list[list[pq.ColumnChunkMetaData]],
    leaves: list[pq.ColumnSchema],
    dictionary: list[str],
) -> Iterator[tuple[str, str]]:
    for leaf, chunks in zip(leaves, by_leaf, strict=True):
        # pyarrow widens such decimals to a fixed length, which these encodings may not fit.
        widened = leaf.physical_type == "BYTE_ARRAY" and _logical(leaf).get("Type") == "Decimal"
        if leaf.path in dictionary or widened:
            continue
        used = {encoding for chunk in chunks for encoding in chunk.encodings}
        chosen = next((encoding for encoding in _ENCODINGS if encoding in used), None)
        if chosen:
            yield leaf.path, chosen


def _version(footer: pq.FileMetaData, kinds: list[dict[str, Any]]) -> str:
    """Version 1 has neither nanoseconds nor, as pyarrow writes it, types that came with 2."""
    nanoseconds = any(kind.get("timeUnit") == _NANOSECONDS for kind in kinds)
    return "1.0" if footer.format_version == "1.0" and not nanoseconds else "2.6"
