"""The seeds of the fuzzer: small files, and the structures in them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.structures.source import SourceFile
from tests.fuzz.parquet_metadata import (
    OF_FILES,
    TARGETS,
    Target,
    as_input,
    look_at_column_index,
    look_at_offset_index,
    look_at_page_header,
    look_at_structure,
)
from tests.support.parquet_parts import parquet, some_table

FILE_BYTES_MAX = 8 * 1024


def own_seeds() -> Iterator[bytes]:
    """Inputs made of files of our own."""
    lists = pa.table({"l": [[1, 2], None, []], "s": [{"a": 1}, None, {"a": 2}]})
    few = {"max_rows_per_page": 5, "write_batch_size": 5, "write_page_checksum": False}
    texts = pa.table({"t": [f"{'text' * 3}{at % 6}" for at in range(40)]})
    numbers = pa.table(
        {
            "d": pa.array([Decimal(at) / 4 for at in range(20)], pa.decimal128(12, 2)),
            "u": pa.array(range(20), pa.uint8()),
            "b": [at % 3 == 0 if at % 4 else None for at in range(20)],
        }
    )
    for file in (
        parquet(some_table(40), max_rows_per_page=10, write_batch_size=10, row_group_size=30),
        parquet(some_table(20), data_page_version="2.0", use_dictionary=False),
        parquet(some_table(9), write_page_index=False, compression="none"),
        parquet(texts, compression="none", dictionary_pagesize_limit=60, **few),
        parquet(texts, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY", **few),
        parquet(numbers, store_decimal_as_integer=True, data_page_version="2.0", **few),
        parquet(numbers, bloom_filter_options={"u": {"ndv": 20, "fpp": 0.1}}, **few),
        parquet(lists),
        parquet(lists.slice(0, 0)),
    ):
        yield from inputs_of(file)


def corpus_seeds(folder: Path) -> Iterator[bytes]:
    """Inputs made of the small files of the corpora."""
    for path in sorted(folder.rglob("*.parquet")):
        if path.stat().st_size <= FILE_BYTES_MAX:
            try:
                yield from inputs_of(path.read_bytes())
            except (CorruptFileError, UnsupportedError):
                continue


def inputs_of(file: bytes) -> Iterator[bytes]:
    """The whole file, its footer, and the indexes and page headers of its first row group."""
    for target in OF_FILES:
        whole = as_input(file, target)
        if whole is not None:
            yield whole
    source = SourceFile(pa.BufferReader(file), "seed.parquet")
    yield _one(look_at_structure, file[source.footer.start : -8])
    for column, chunk in enumerate(
        source.footer.row_groups[0].chunks[:4] if source.footer.row_groups else ()
    ):
        if chunk.offset_index is not None:
            yield _one(
                look_at_offset_index, file[chunk.offset_index.offset : chunk.offset_index.end]
            )
        if chunk.column_index is not None:
            yield _one(
                look_at_column_index, file[chunk.column_index.offset : chunk.column_index.end]
            )
        for page in list(source.pages(0, column))[:2]:
            yield _one(look_at_page_header, file[page.offset : page.body_offset])


def _one(target: Target, data: bytes) -> bytes:
    return bytes((TARGETS.index(target),)) + data
