"""Rows on their way from some files to others, in a temporary file, so that they needn't all be in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.splicing.output.copying import Scratch

_PLACE = "_place"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
OpenScratch = Callable[[], Scratch]


class RowPieces:
    """Rows by the output that they belong to, each with its place; without `open_scratch` all of
    them are in memory. Not thread-safe; blocks.

    Each output has the places from the end of the one before it up to its own, of `ends`.
    """

    def __init__(self, ends: Sequence[int], open_scratch: OpenScratch | None = None) -> None:
        self._ends = np.array(ends, np.int64)
        self._scratch = None if open_scratch is None else open_scratch()
        self._stored: list[list[tuple[int, int]]] = [[] for _ in ends]
        self._held: list[list[pa.Table]] = [[] for _ in ends]

    def add(self, rows: pa.Table, places: Integers) -> None:
        """Add rows, which have these places; each place occurs once."""
        order = np.argsort(places)
        outputs = np.searchsorted(self._ends, places[order], "right")
        rows = rows.append_column(_PLACE, pa.array(places)).take(pa.array(order))
        starts = np.searchsorted(outputs, np.arange(len(self._ends) + 1))
        for output in np.unique(outputs).tolist():
            first, last = int(starts[output]), int(starts[output + 1])
            self._put(output, rows.slice(first, last - first))

    def rows(self, output: int) -> pa.Table:
        """Return the rows of an output in the order of their places."""
        pieces = [*self._held[output], *map(self._read, self._stored[output])]
        rows = pa.concat_tables(pieces)
        order = np.argsort(rows.column(_PLACE).to_numpy())
        return rows.drop_columns([_PLACE]).take(pa.array(order))

    def _put(self, output: int, rows: pa.Table) -> None:
        if self._scratch is None:
            self._held[output].append(rows)
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=_OPTIONS) as stream:
            stream.write_table(rows)
        data = sink.getvalue()
        self._stored[output].append((self._scratch.put(data), data.size))

    def _read(self, at: tuple[int, int]) -> pa.Table:
        assert self._scratch is not None, "it has stored pieces"
        with pa.ipc.open_stream(self._scratch.read(*at)) as stream:
            return stream.read_all()
