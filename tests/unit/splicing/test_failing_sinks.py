"""A sink that fails leaves nothing running, and its error says which file it was about."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError, StorageError
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.pages.page_encoding import PageStyle, _check_all, encode_pages
from lakesplice.splicing.splice import splice
from lakesplice.splicing.structures.enums import Codec, Encoding
from tests.support.in_memory import edits_of, look
from tests.support.parquet_parts import PLACE, opened, parquet, some_table


class FullDisk(StreamSink):
    """Room for nothing but a few bytes."""

    def write(self, data: Any) -> None:
        raise StorageError("the disk is full")

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        raise StorageError("the disk is full")


@pytest.mark.slow
def test_no_thread_reads_on_when_the_sink_has_failed() -> None:
    random = np.random.default_rng(1)
    table = pa.table({f"c{at}": random.random(200_000) for at in range(8)})
    source = parquet(table, row_group_size=200_000, use_dictionary=False)
    edits = edits_of({f"c{at}": ([5], pa.array([0.5])) for at in range(8)})
    with pytest.raises(StorageError, match="full") as raised:
        splice(opened(source), "a", edits, FullDisk(pa.BufferOutputStream()), Options(threads=2))
    running = [thread.name for thread in threading.enumerate() if thread.name.startswith("splice")]
    assert raised.value.__traceback__ is not None  # which holds on to what was open
    assert running == []


class Shortened(StreamSink):
    """The source lost its end while it was copied."""

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        super().copy(pa.BufferReader(b"PAR1"), offset, length)


def test_a_source_that_ends_too_early_is_named() -> None:
    table = pa.table({"id": range(1000), "text": [f"{at}" * 300 for at in range(1000)]})
    source = parquet(table, compression="none", use_dictionary=False)
    edits = edits_of({"id": ([5], pa.array([-1]))})
    with pytest.raises(CorruptFileError) as raised:
        splice(opened(source), "a.parquet", edits, Shortened(pa.BufferOutputStream()))
    assert raised.value.facts["path"] == "a.parquet"


@pytest.mark.parametrize("counted", [True, False])
def test_new_pages_of_another_encoding_than_meant_are_never_written(counted: bool) -> None:
    leaf = look(parquet(some_table())).leaf(0)
    style = PageStyle(Codec.UNCOMPRESSED, v2=False, checksums=False)
    pages = encode_pages(leaf, [pa.array([1, 2])], Encoding.PLAIN, style, PLACE)
    assert pages is not None
    chunk = pages.chunk if counted else replace(pages.chunk, encoding_stats=None)
    with pytest.raises(CorruptFileError, match="this is a bug in Lakesplice"):
        _check_all(chunk, PLACE, with_dictionary=True)
