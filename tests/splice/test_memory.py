"""Splices need little memory, however large a column chunk is; each is measured in its own process.

What is measured is anonymous memory (RssAnon): pages of a mapped file are the system's to drop.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.machine import ROOT

MEBIBYTE = 1 << 20
# A chunk as these would take some hundred MiB to a GiB at once.
PEAK_MAX = 250 * MEBIBYTE
TEXTS = pa.array(["x" * 200 + str(at) for at in range(10)])


def written(path: Path, values: pa.Array, **options: Any) -> Path:
    options = {"write_page_index": True, "max_rows_per_page": 4096} | options
    rows = len(values)
    pq.write_table(pa.table({"x": values}), path, row_group_size=rows, **options)
    return path


def text(rows: int) -> pa.Array:
    return TEXTS.take(pa.array(np.arange(rows) % len(TEXTS)))


def numbers(rows: int) -> pa.Array:
    return pa.array(np.random.default_rng(1).random(rows))


def result(source: Path, step: int) -> dict[str, Any]:
    """A splice of every `step`-th row, in a process of its own."""
    command = [sys.executable, "-m", "tests.support.peak_memory", str(source), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert not done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("index", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_a_chunk_of_long_texts_is_encoded_whole_in_bounded_memory(
    index: bool, tmp_path: Path
) -> None:
    layout = {} if index else {"max_rows_per_page": 1 << 30}
    source = written(tmp_path / "x.parquet", text(2_000_000), write_page_index=index, **layout)
    found = result(source, 4000)
    assert found["whole"] == ("many_pages" if index else "no_page_index")
    assert found["peak"] < PEAK_MAX


@pytest.mark.parametrize("step", [4000, pytest.param(40_000, marks=pytest.mark.nightly)])
def test_a_chunk_whose_pages_change_is_encoded_in_bounded_memory(step: int, tmp_path: Path) -> None:
    layout = {"use_dictionary": False, "compression": "none"}
    source = written(tmp_path / "x.parquet", numbers(20_000_000), **layout)
    found = result(source, step)
    assert not found["whole"]
    assert found["peak"] < PEAK_MAX


def test_a_chunk_without_an_index_is_encoded_in_bounded_memory(tmp_path: Path) -> None:
    layout = {"use_dictionary": False, "compression": "none", "write_page_index": False}
    source = written(tmp_path / "x.parquet", numbers(20_000_000), **layout)
    found = result(source, 10_000_000)
    assert found["whole"] == "no_page_index"
    assert found["peak"] < PEAK_MAX
