"""Erased values are nowhere in the new file, however the old one holds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakesplice
from tests.support.command_line import CommandLine

ROWS, ROW = 1000, 123
NAMES = [f"somebody {at % 50}" for at in range(ROWS)]
NAMES[ROW] = "Erika Mustermann"
Made = Callable[[Path], Any]


def written(path: Path, column: pa.Array, **options: Any) -> Path:
    table = pa.table({"id": np.arange(ROWS), "x": column})
    layout = {"max_rows_per_page": 100, "write_batch_size": 50, "write_page_index": True}
    pq.write_table(table, path / "source.parquet", **layout | {"compression": "none"} | options)
    return path / "source.parquet"


NESTED = pa.list_(pa.string())
CASES: dict[str, tuple[pa.DataType, dict[str, Any], str | None]] = {
    "dictionary": (pa.string(), {}, "erased_dictionary"),
    "plain": (pa.string(), {"use_dictionary": False}, None),
    "deltas": (
        pa.string(),
        {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}},
        None,
    ),
    "no page index": (pa.string(), {"write_page_index": False}, "no_page_index"),
    "nested": (NESTED, {}, "nested"),
    "bytes": (pa.binary(), {"data_page_version": "2.0"}, "erased_dictionary"),
    "bounds in pages": (pa.string(), {"version": "1.0"}, "erased_dictionary"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("new", [None, "somebody 1"])
def test_an_erased_value_is_in_no_file(case: str, new: str | None, tmp_path: Path) -> None:
    kind, options, why = CASES[case]
    values = [[name] for name in NAMES] if kind == NESTED else NAMES
    source, target = written(tmp_path, pa.array(values, kind), **options), tmp_path / "target"
    assert b"Mustermann" in source.read_bytes()
    value = [new] if kind == NESTED else new
    changes = pa.table({"id": [ROW], "x": pa.array([value], kind)})
    done = lakesplice.splice_file(source, changes, target, key="id", erase=True)
    assert next(iter(done.encoded_whole.values()), None) == why
    assert done.rewritten is None
    assert b"Mustermann" not in target.read_bytes()
    found, before = pq.read_table(target), pq.read_table(source).column("x").to_pylist()
    before[ROW] = pa.scalar(value, kind).as_py()
    assert found.column("x").to_pylist() == before


def test_an_entry_that_an_earlier_splice_left_in_the_dictionary_goes_too(tmp_path: Path) -> None:
    source = written(tmp_path, pa.array(NAMES))
    kept, erased = tmp_path / "kept", tmp_path / "erased"
    first = pa.table({"id": [ROW], "x": ["nobody"]})
    lakesplice.splice_file(source, first, kept, key="id")
    assert b"Mustermann" in kept.read_bytes()
    second = pa.table({"id": [ROW + 1], "x": ["nobody"]})
    lakesplice.splice_file(kept, second, erased, key="id", erase=True)
    assert b"Mustermann" not in erased.read_bytes()


def test_a_file_rewritten_whole_holds_no_erased_value(tmp_path: Path) -> None:
    table = {"x": NAMES, "t": pa.array(np.arange(ROWS), pa.timestamp("us"))}
    source, target = tmp_path / "source", tmp_path / "target"
    options = {"use_deprecated_int96_timestamps": True, "compression": "none"}
    pq.write_table(pa.table(table), source, **options)
    times = pa.array([0], pa.timestamp("us"))
    changes = pa.table({"row": [ROW], "x": pa.array([None], pa.string()), "t": times})
    done = lakesplice.splice_file(source, changes, target, by_position="row", erase=True)
    assert done.rewritten == "other_layout"
    assert b"Mustermann" not in target.read_bytes()


def test_the_command_erases_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, changes = written(tmp_path, pa.array(NAMES)), tmp_path / "changes"
    pq.write_table(pa.table({"id": [ROW], "x": ["nobody"]}), changes)
    for more, there in (((), True), (("--erase",), False)):
        out = tmp_path / f"out-{len(more)}"
        given = ("splice", source, "--changes", changes, "--key", "id", "--out", out, *more)
        CommandLine(capsys).rows(*given)
        assert (b"Mustermann" in out.read_bytes()) == there
