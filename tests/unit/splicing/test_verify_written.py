"""An assembled file is checked: a footer that can't be true is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.options import Options
from lakesplice.splicing.output.assemble import AssembledFile, assemble
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.splice import edited_groups
from lakesplice.splicing.structures.footer import Chunk, Footer, RowGroup
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.verify import verify_written


@pytest.fixture
def written() -> AssembledFile:
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), buffer)
    file = SourceFile(pa.BufferReader(buffer.getvalue()), "source")
    groups = edited_groups(file, Edits(), Options())
    return assemble(file.footer, groups, StreamSink(pa.BufferOutputStream()), 1)


def otherwise(written: AssembledFile, change: Callable[[RowGroup], RowGroup]) -> AssembledFile:
    groups = tuple(map(change, written.footer.row_groups))
    footer: Footer = replace(written.footer, row_groups=groups)
    return replace(written, footer=footer, encoded=footer.encode())


def with_chunk(group: RowGroup, change: Callable[[Chunk], Chunk]) -> RowGroup:
    return replace(group, chunks=(group.chunks[0], change(group.chunks[1])))


def test_a_correctly_written_file_passes(written: AssembledFile) -> None:
    verify_written(written, 3, "new")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda group: with_chunk(group, lambda c: replace(c, num_values=4)), "number of values"),
        (lambda group: with_chunk(group, lambda c: replace(c, compressed_size=1)), "don't end"),
        (lambda group: replace(group, chunks=group.chunks[:1]), "describe the rows"),
        (
            lambda group: with_chunk(
                group, lambda c: replace(c, dictionary_page_offset=c.start + 1)
            ),
            "don't touch",
        ),
    ],
)
def test_a_footer_that_cannot_be_true_is_refused(
    written: AssembledFile, change: Callable[[RowGroup], RowGroup], message: str
) -> None:
    with pytest.raises(CorruptFileError, match=message):
        verify_written(otherwise(written, change), 3, "new")


def test_a_footer_of_other_rows_than_were_meant_is_refused(written: AssembledFile) -> None:
    with pytest.raises(CorruptFileError, match="describe the rows"):
        verify_written(written, 4, "new")
