"""Compaction's rewriter falls back to the plain rewrite only before a byte is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import UnsupportedError
from lakesplice.formats.parquet import WrittenBase, write_base
from lakesplice.model.address import BaseFile, Segment
from lakesplice.planning.by_hand.hand_fed_changes import base_rows
from lakesplice.planning.by_hand.hand_fed_schema import hand_fed_schema, stored_rows
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.table.files.page_rewriter import PageRewriter

ROWS = 100_000
GIVEN = pa.table({"id": np.arange(ROWS), "a": np.arange(ROWS), "b": np.random.rand(ROWS)})
SCHEMA = hand_fed_schema(GIVEN.schema, ["id"])


def base() -> pa.Buffer:
    now = pa.scalar(0, pa.timestamp("us", tz="UTC"))
    rows = base_rows(stored_rows(GIVEN, SCHEMA), 0, now, SCHEMA)
    sink = pa.BufferOutputStream()
    write_base([rows], SCHEMA, sink)
    return sink.getvalue()


class Fails(StreamSink):
    """Refuses when asked to copy, as if a page turned out to be beyond us."""

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        raise UnsupportedError("a page can't be copied", path="base")


def rewritten(sink: pa.BufferOutputStream, edits: Edits, open_sink: Any) -> WrittenBase:
    source = base()
    file = BaseFile("base", source.size, (Segment(1, ROWS),))
    rewriter = PageRewriter(open_sink=open_sink)
    return rewriter.rewrite(pa.BufferReader(source), file, edits, SCHEMA, sink)


def edit(column: str, values: pa.Array) -> Edits:
    return Edits(np.array([5]), {column: ColumnEdit(np.array([5]), values)})


def test_a_refusal_behind_the_first_byte_is_raised_and_nothing_is_appended() -> None:
    sink = pa.BufferOutputStream()
    with pytest.raises(UnsupportedError):
        rewritten(sink, edit("a", pa.array([1])), Fails)
    assert not sink.getvalue().to_pybytes().endswith(b"PAR1")


def test_a_file_is_spliced_without_a_fallback() -> None:
    sink = pa.BufferOutputStream()
    done = rewritten(sink, edit("a", pa.array([-7])), StreamSink)
    assert "bloom_filters_dropped" not in done.counts
    assert not [name for name in done.counts if name.startswith("fallback_")]
    assert pq.read_table(pa.BufferReader(sink.getvalue())).column("a")[5].as_py() == -7
