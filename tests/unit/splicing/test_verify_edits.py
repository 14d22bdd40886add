"""A new file is checked: every edited page, although few are decoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.verify import verify_edits
from tests.support.in_memory import look, spliced
from tests.support.parquet_parts import opened

ROWS, PAGE_ROWS, GROUP_ROWS = 4000, 50, 2000
LAYOUT = {
    "write_page_index": True,
    "write_page_checksum": True,
    "max_rows_per_page": PAGE_ROWS,
    "write_batch_size": PAGE_ROWS,
    "compression": "none",
}


def written(*, ours: bool, dictionary: bool) -> bytes:
    buffer = pa.BufferOutputStream()
    table = pa.table({"id": np.arange(ROWS), "x": np.arange(ROWS) % 7, "y": np.arange(ROWS)})
    with pq.ParquetWriter(buffer, table.schema, use_dictionary=dictionary, **LAYOUT) as writer:
        writer.write_table(table, row_group_size=GROUP_ROWS)
        if ours:
            writer.add_key_value_metadata({"lakesplice": "1"})
    data: bytes = buffer.getvalue().to_pybytes()
    return data


def edit(step: int) -> tuple[np.ndarray, pa.Array]:
    rows = np.arange(1, ROWS, step)
    return rows, pa.array(rows % 5 + 1)


def verify(data: bytes, step: int) -> None:
    rows, values = edit(step)
    verify_edits(opened(data), "target", Edits(rows, {"x": ColumnEdit(rows, values)}))


@pytest.mark.slow
@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("step", [10, 170, 3000])
def test_every_edited_page_that_is_damaged_is_found(
    step: int, dictionary: bool, ours: bool
) -> None:
    data = spliced(written(ours=ours, dictionary=dictionary), x=edit(step))
    verify(data, step)
    file = look(data)
    for group in range(ROWS // GROUP_ROWS):
        touched = np.unique(edit(step)[0] // PAGE_ROWS) - group * GROUP_ROWS // PAGE_ROWS
        pages = [page for page in file.pages(group, 1) if page.header.is_data]
        for number in touched[(touched >= 0) & (touched < len(pages))].tolist():
            damaged = bytearray(data)
            damaged[pages[number].end - 1] ^= 1
            with pytest.raises(CorruptFileError, match=r"checksum|decoded"):
                verify(bytes(damaged), step)


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("step", [10, 170, 3000])
def test_a_file_without_the_edits_is_found(step: int, ours: bool) -> None:
    with pytest.raises(CorruptFileError, match="contain the intended values"):
        verify(written(ours=ours, dictionary=False), step)
