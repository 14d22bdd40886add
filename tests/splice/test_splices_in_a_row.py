"""A file that is spliced again and again stays right and keeps its size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from tests.support.parquet_conditions import Condition
from tests.support.parquet_readers import IN_PROCESS, SPARK
from tests.support.reader_matrix import Matrix, difference
from tests.support.splicing import SPLICE, plain, read, written

ROWS = 30_000
SPLICES, SPLICES_OF_A_NIGHT = 9, 50
GROWTH_MAX = 1.03


def _table() -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "k": np.arange(ROWS),
            "status": [f"s{n}" for n in random.integers(0, 20, ROWS)],
            "amount": pa.array(random.integers(0, 5000, ROWS), pa.int32()),
            "note": [f"note {n}" if n % 3 else None for n in random.integers(0, 10**6, ROWS)],
            "still": random.random(ROWS),
        }
    )


def _edits(turn: int) -> Edits:
    random = np.random.default_rng(turn)
    rows = np.flatnonzero(random.random(ROWS) < (0.0005, 0.02, 0.3)[turn % 3])
    texts = [f"s{n}" for n in random.integers(0, 20 + turn, len(rows))]
    notes = [None if n % 4 == 0 else f"note {n}" for n in random.integers(0, 10**6, len(rows))]
    amounts = pa.array(random.integers(0, 5000 + turn, len(rows)), pa.int32())
    columns = {"status": pa.array(texts, pa.string()), "amount": amounts}
    if turn % 2:
        columns["note"] = pa.array(notes, pa.string())
    return Edits(rows, {name: ColumnEdit(rows, values) for name, values in columns.items()})


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(
        table,
        path,
        compression="zstd",
        row_group_size=20_000,
        max_rows_per_page=1000,
        write_batch_size=1000,
        write_page_index=True,
        write_page_checksum=True,
        dictionary_pagesize_limit=64 * 1024,
    )


@pytest.mark.parametrize(
    "splices", [SPLICES, pytest.param(SPLICES_OF_A_NIGHT, marks=pytest.mark.nightly)]
)
def test_splices_in_a_row_read_and_weigh_as_a_file_written_at_once(
    splices: int, tmp_path: Path
) -> None:
    source = tmp_path / "0.parquet"
    _write(_table(), source)
    expected = read(source)
    for turn in range(1, splices + 1):
        edits, target = _edits(turn), tmp_path / f"{turn}.parquet"
        assert written(SPLICE, source, edits, target) == SPLICE
        table = {name: expected.column(name) for name in expected.column_names}
        for name, edit in edits.columns.items():
            changed = np.zeros(ROWS, bool)
            changed[edit.rows] = True
            old = table[name].combine_chunks()
            table[name] = pc.replace_with_mask(old, pa.array(changed), edit.values)
        expected = pa.table(table)
        assert difference(expected, read(target)) is None, turn
        if turn > 1:
            source.unlink()
        source = target
    anew, unedited = tmp_path / "anew.parquet", tmp_path / "plain.parquet"
    _write(expected, anew)
    assert source.stat().st_size <= GROWTH_MAX * anew.stat().st_size
    plain(expected, source, unedited)
    asked = [
        Condition("status", "=", ("s25",)),
        Condition("amount", "in", (0, 17, 5049)),
        Condition("note", "is null"),
        Condition("k", ">=", (ROWS - 5,)),
    ]
    matrix = Matrix([*IN_PROCESS, *SPARK])
    assert not matrix.differences(anew, source, unedited, asked)
    assert not matrix.unread
