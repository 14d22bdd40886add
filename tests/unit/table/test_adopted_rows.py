"""Reading chosen rows of other writers' files, page by page or, if that is impossible, by row
groups.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.adopted_rows import state_of_any
from tests.support.in_memory import signed_by
from tests.support.parquet_parts import opened, parquet

ROWS = 2500
TABLE = pa.table({"id": range(ROWS), "name": [f"name {at:05}" for at in range(ROWS)]})


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    "rows", [[0, 999, 1000, 1001, 2000, 2499], [1500], [0, 2100], [999], [1000], []]
)
def test_rows_are_found_in_every_row_group(tmp_path: Path, old: bool, rows: list[int]) -> None:
    """Pages of old writers can't be read one by one (PARQUET-246)."""
    encoding = {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}}
    data = parquet(TABLE, **encoding)
    if old:
        data = signed_by(data, "parquet-mr")
    assert (SourceFile(opened(data), "a").refusal(0, 1) is not None) == old
    (tmp_path / "a.parquet").write_bytes(data)
    snapshot = Table.adopt(tmp_path, key=["id"]).snapshot
    (file,) = snapshot.manifest.files.values()
    if old and not rows:
        return  # nobody asks for no rows
    found = state_of_any(
        LocalStore(tmp_path), file, snapshot.manifest.schema, ["name", "id"], np.array(rows, int)
    )
    assert found.to_pydict() == {"name": [f"name {at:05}" for at in rows], "id": rows}
