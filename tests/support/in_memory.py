"""Parquet files in memory: edits them, changes their metadata, and inspects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.copying import Sink, StreamSink
from lakesplice.splicing.splice import splice
from lakesplice.splicing.structures.chunks import Chunk
from lakesplice.splicing.structures.footer import Footer
from lakesplice.splicing.structures.source import SourceFile

NAME = "a.parquet"


NewValues = tuple[Sequence[int] | npt.NDArray[Any], pa.Array]


def edits_of(columns: Mapping[str, NewValues]) -> Edits:
    """Edits of columns: at which rows, and with what."""
    edits = {name: ColumnEdit(np.array(rows), values) for name, (rows, values) in columns.items()}
    every = [edit.rows for edit in edits.values()]
    return Edits(np.unique(np.concatenate(every)) if every else np.empty(0, np.int64), edits)


def made(operation: Callable[[Sink], object]) -> bytes:
    """What an operation writes."""
    buffer = pa.BufferOutputStream()
    operation(StreamSink(buffer))
    data: bytes = buffer.getvalue().to_pybytes()
    return data


def spliced(
    data: bytes,
    named: Mapping[str, NewValues] | None = None,
    /,
    *,
    options: Options | None = None,
    **columns: NewValues,
) -> bytes:
    """A file with edits of columns, each a pair of rows and values."""
    edits = edits_of({**(named or {}), **columns})
    return made(lambda sink: splice(pa.BufferReader(data), NAME, edits, sink, options or Options()))


def look(data: bytes) -> SourceFile:
    """A file, opened."""
    return SourceFile(pa.BufferReader(data), NAME)


def with_footer(data: bytes, change: Callable[[Footer], Footer]) -> bytes:
    """A file with its footer changed."""
    footer = look(data).footer
    return data[: footer.start] + change(footer).encode()


def with_chunk(data: bytes, column: int, change: Callable[[Chunk], Chunk]) -> bytes:
    """A file with a column's chunks described in another way."""

    def changed(footer: Footer) -> Footer:
        groups = []
        for group in footer.row_groups:
            chunks = [*group.chunks]
            chunks[column] = change(chunks[column])
            groups.append(replace(group, chunks=tuple(chunks)))
        return replace(footer, row_groups=tuple(groups))

    return with_footer(data, changed)


def signed_by(data: bytes, created_by: str | None) -> bytes:
    """A file that somebody else seems to have written."""
    return with_footer(data, lambda footer: replace(footer, created_by=created_by))
