"""A splice and the plain rewrite behind one function, and checks of what either writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import UnsupportedError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.splice import Options, splice
from lakesplice.splicing.whole_rewrite import edited, rewrite_whole
from tests.support.parquet_conditions import Condition
from tests.support.reader_matrix import Matrix, difference

SPLICE, WHOLE = "splice", "whole"
WAYS = (SPLICE, WHOLE)
_THREADS = 2


def written(way: str, source: Path, edits: Edits, target: Path) -> str:
    """Write `source` with `edits` to `target` and return how: a splice that can't rewrites."""
    with pa.memory_map(str(source)) as opened:
        if way == SPLICE:
            try:
                with pa.OSFile(str(target), "wb") as sink:
                    splice(opened, source.name, edits, StreamSink(sink), Options(_THREADS))
                return SPLICE
            except UnsupportedError as refusal:
                if "reason" not in refusal.facts:
                    raise
        with pa.OSFile(str(target), "wb") as sink:
            rewrite_whole(opened, source.name, edits, sink)
        return WHOLE


def meant(source: Path, edits: Edits) -> pa.Table:
    """What the file should hold, by way of pyarrow alone."""
    return edited(read(source), edits)


def read(path: Path) -> pa.Table:
    """A file by pyarrow; INT96 in microseconds, since nanoseconds don't reach all of them."""
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
    return file.read()


def plain(table: pa.Table, like: Path, path: Path) -> None:
    """Write the rows with nothing that a splice deals with: one group, no dictionary, no index."""
    schema = pq.ParquetFile(like).schema
    leaves = [schema.column(at) for at in range(len(schema))]
    pq.write_table(
        table,
        path,
        compression="none",
        use_dictionary=False,
        store_decimal_as_integer=any(
            leaf.logical_type.type == "DECIMAL" and leaf.physical_type in ("INT32", "INT64")
            for leaf in leaves
        ),
        use_deprecated_int96_timestamps=any(leaf.physical_type == "INT96" for leaf in leaves),
        store_schema=b"ARROW:schema" in (pq.read_metadata(like).metadata or {}),
        row_group_size=max(1, table.num_rows),
    )


def wrongs(
    source: Path,
    edits: Edits,
    target: Path,
    conditions: Sequence[Condition],
    matrix: Matrix,
) -> list[str]:
    """Return what any reader gets wrong of `target`, which is `source` with `edits`."""
    expected = meant(source, edits)
    seen = difference(expected, read(target))
    if seen is not None:
        return [f"pyarrow against what was meant: {seen}"]
    unedited = target.with_name("plain.parquet")
    plain(expected, source, unedited)
    return matrix.differences(source, target, unedited, conditions)
