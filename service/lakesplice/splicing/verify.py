"""What was written is looked at before anyone relies on it.

`verify_written` needs no more than what the assembler knows: the footer is decoded again from its
bytes, sizes must add up and chunks touch. `verify_edits` opens the new file and decodes the edited
rows' pages, checksums included.
"""

from __future__ import annotations

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.planning.edits import ColumnEdit, Edits
from lakesplice.splicing.metadata.schemas import refuse_doubles
from lakesplice.splicing.output.assemble import Assembled
from lakesplice.splicing.pages.laying import bits, stored
from lakesplice.splicing.pages.rows import read_nested_rows, read_rows
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.splicing.structures.place import Place
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.structures.thrift import decode_struct


def verify_written(written: Assembled, rows: int, name: str) -> None:
    """Raise `CorruptFileError` unless the footer says what was written, of so many rows."""
    place = Place(name, "footer of the new file")
    found, _ = decode_struct(written.encoded, place=place)
    footer = written.footer
    if found != written.struct:
        raise place.corrupt("it reads otherwise than it was written; this is a defect")
    groups = footer.row_groups
    if footer.num_rows != rows or any(len(g.chunks) != len(footer.leaves) for g in groups):
        raise place.corrupt("it describes other rows than were written; this is a defect")
    at = len(MAGIC)
    for group in groups:
        for chunk, leaf in zip(group.chunks, footer.leaves, strict=True):
            if leaf.flat and chunk.num_values != group.num_rows:
                raise place.corrupt(
                    "a column has another number of values than rows; this is a defect",
                    column=leaf.name,
                    values=chunk.num_values,
                )
            if chunk.compressed_size and chunk.start != at:
                raise place.corrupt("its chunks don't touch; this is a defect", offset=at)
            at += chunk.compressed_size
    if at != written.pages_end:
        raise place.corrupt("its chunks don't end where the pages do; this is a defect")


def verify_edits(source: pa.NativeFile, name: str, edits: Edits) -> None:
    """Raise `CorruptFileError` unless the file `name` holds the edits.

    Reads the footer, the indexes of the edited columns and the pages of the edited rows. Blocks.
    `UsageError` where columns of one name can't be told apart.
    """
    file = SourceFile(source, name)
    refuse_doubles(file.footer, edits.columns, name)
    flat = {leaf.path[0] for leaf in file.footer.leaves if leaf.flat}
    for column, edit in edits.columns.items():
        if len(edit.rows):
            read = read_rows if column in flat else read_nested_rows
            _verify(file, column, edit, read(file, column, edit.rows))


def _verify(file: SourceFile, column: str, edit: ColumnEdit, found: pa.Array) -> None:
    if not bits(found).equals(bits(stored(edit.values, found.type))):
        raise CorruptFileError(
            "a spliced file does not hold what was meant; check the disk",
            path=file.name,
            column=column,
        )
