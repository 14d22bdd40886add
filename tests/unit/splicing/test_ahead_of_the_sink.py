"""Chunks are made ahead of the writer: many small ones, or few large ones."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.assemble import GroupPlan, assemble
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.output.images import ChunkImage, MakeImageFunction
from lakesplice.splicing.splice import edited_groups
from lakesplice.splicing.structures.source import SourceFile

THREADS = 2
COLUMNS = 30
MEGABYTE = 1024 * 1024


class Counting(StreamSink):
    """Knows how many chunks were made and not written yet, whenever one is written."""

    def __init__(self, out: pa.BufferOutputStream, made: list[int], settled: Any) -> None:
        super().__init__(out)
        self.ahead: list[int] = []
        self._made, self._settled = made, settled

    def write(self, data: Any) -> None:
        super().write(data)
        if len(data) >= MEGABYTE:
            self._settled()
            self.ahead.append(len(self._made) - len(self.ahead))


@pytest.mark.parametrize(
    ("megabytes", "most"),
    [(0, COLUMNS), (2, 16 // 2 + 1), (20, THREADS + 1)],
)
def test_as_many_wait_as_memory_has_room_for(megabytes: int, most: int) -> None:
    buffer = pa.BufferOutputStream()
    # Each chunk is as long as what is written at once.
    rows = np.arange(MEGABYTE // 8)
    table = pa.table({f"c{at}": rows for at in range(COLUMNS)})
    pq.write_table(table, buffer, compression="none", use_dictionary=False)
    file = SourceFile(pa.BufferReader(buffer.getvalue()), "source")
    made, lock = list[int](), threading.Condition()
    (group,) = edited_groups(file, Edits(), Options())

    def noted(at: int) -> ChunkImage:
        image = group.chunks[at]()
        chunk = file.chunk(0, at)
        image = replace(image, pieces=(file.read(chunk.start, chunk.compressed_size),))
        with lock:
            made.append(at)
            lock.notify_all()
        return image

    makers = [MakeImageFunction(partial(noted, at), megabytes * MEGABYTE) for at in range(COLUMNS)]
    out = pa.BufferOutputStream()
    sink: Counting = Counting(out, made, lambda: settle(lock, made, len(sink.ahead), most))
    assemble(file.footer, [GroupPlan(group.like, makers)], sink, THREADS)
    assert len(sink.ahead) == COLUMNS
    assert max(sink.ahead) == most
    assert pq.read_table(pa.BufferReader(out.getvalue())).equals(table)


def settle(lock: threading.Condition, made: list[int], written: int, most: int) -> None:
    """Wait until all that may be made was made, and a moment for what may not."""
    with lock:
        lock.wait_for(lambda: len(made) >= min(written + most, COLUMNS), timeout=10)
        lock.wait(timeout=0.01)
