"""The splice benchmark on some hundred rows: all contenders give the right rows, and the report's
sums are right.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.splice import report
from benchmarks.splice.data import COLUMNS, GRID, KEY, LARGE, SIX, Cell, changed_columns
from benchmarks.splice.data import make_changes as make
from benchmarks.splice.measuring import serve
from benchmarks.splice.memory import CHANGES, peak
from benchmarks.splice.memory import make as make_large
from benchmarks.splice.memory import make_changes as make_large_changes
from benchmarks.splice.one_file import OneFile, splice_one
from benchmarks.splice.python_contenders import CONTENDERS
from benchmarks.splice.turns import ContenderProcess, in_turn
from tests.support import machine

ROWS = 600


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A table of the same names and kinds as store_sales."""
    keys = {"ss_item_sk": [n % 7 for n in range(ROWS)], "ss_ticket_number": list(range(ROWS))}
    first = {
        "ss_net_profit": pa.array([Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(7, 2)),
        "ss_quantity": pa.array([None if n % 9 == 0 else n % 100 for n in range(ROWS)]),
        "ss_sales_price": pa.array([Decimal(n % 50) for n in range(ROWS)], pa.decimal128(7, 2)),
    }
    rest = {f"other_{at}": [at] * ROWS for at in range(COLUMNS - 5)}
    path = tmp_path / "store_sales.parquet"
    pq.write_table(pa.table({**keys, **first, **rest}), path)
    return path


def test_the_grid_is_what_was_asked_for() -> None:
    assert len(GRID) == len(set(GRID)) == 18
    assert set(SIX) < set(GRID)
    assert len(SIX) == 6
    assert set(LARGE) < set(GRID)


@pytest.mark.parametrize("spread", ["uniform", "newest"])
def test_changes_differ_from_the_rows_they_are_for(
    source: Path, tmp_path: Path, spread: str
) -> None:
    rows, changes = pq.read_table(source), tmp_path / "changes.parquet"
    assert make(source, Cell(0.05, COLUMNS, spread), changes) == 30
    new = pq.read_table(changes)
    assert new.num_columns == COLUMNS
    tickets = new.column("ss_ticket_number").to_pylist()
    assert len(set(tickets)) == 30
    assert (min(tickets) == ROWS - 30) is (spread == "newest")
    old = rows.take(pa.array(tickets))
    assert old.column("other_3").to_pylist() != new.column("other_3").to_pylist()


def test_a_benchmark_of_whole_rows_has_the_stated_number_of_new_values(
    source: Path, tmp_path: Path
) -> None:
    rows, changes = pq.read_table(source), tmp_path / "changes.parquet"
    make(source, Cell(0.05, COLUMNS, "newest", 1), changes)
    new = pq.read_table(changes).sort_by("ss_ticket_number")
    old = rows.slice(ROWS - 30).select(new.column_names)
    assert [n for n in new.column_names if new.column(n) != old.column(n)] == ["ss_net_profit"]


@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.parametrize("columns", [1, pytest.param(COLUMNS, marks=pytest.mark.nightly)])
def test_every_contender_ends_at_the_truth(
    source: Path, tmp_path: Path, contender: str, columns: int
) -> None:
    changes = tmp_path / "changes.parquet"
    make(source, Cell(0.2, columns, "uniform"), changes)
    rows = pq.read_table(source)
    parts = [tmp_path / f"{at}.parquet" for at in range(2)]
    for at, part in enumerate(parts):
        pq.write_table(rows.slice(at * ROWS // 2, ROWS // 2), part)
    names = list(changed_columns(rows.schema, columns))
    cell = {
        "name": "20-01-uniform",
        "changes": str(changes),
        "names": names,
        "sums": _sums(rows, pq.read_table(changes), names),
    }
    task = {"contender": contender, "work": str(tmp_path), "parts": parts, "cells": [cell]}
    requests = [json.dumps(request) for request in ({"run": 0}, {"run": 0}, {"check": 0})]
    found: list[dict[str, Any]] = []
    serve(task, CONTENDERS[contender](task), requests, found.append)
    ready, *runs, checked = found
    assert ready == {"ready": True}
    assert [set(run) >= {"whole"} for run in runs] == [True, True]
    assert checked == {"right": True}


@pytest.mark.nightly
def test_contenders_take_turns_in_processes_of_their_own(source: Path, tmp_path: Path) -> None:
    changes = tmp_path / "changes.parquet"
    make(source, Cell(0.2, 1, "uniform"), changes)
    rows = pq.read_table(source)
    names = list(changed_columns(rows.schema, 1))
    sums = _sums(rows, pq.read_table(changes), names)
    cell = {"name": "20-01-uniform", "changes": str(changes), "names": names, "sums": sums}
    kept: list[dict[str, Any]] = []
    with ExitStack() as stack:
        started = {}
        for name in ("lakesplice", "pyarrow"):
            task = {"contender": name, "work": str(tmp_path), "parts": [str(source)]}
            text = json.dumps({**task, "cells": [cell]})
            command = [sys.executable, "-m", "benchmarks.splice.python_contenders", text]
            process = ContenderProcess(name, command, tmp_path / f"{name}.log", machine.ROOT)
            started[name] = stack.enter_context(closing(process))
            started[name].ready()
        in_turn(started, [cell], 2, lambda found: kept.append(json.loads(json.dumps(found))))
    (found,) = kept
    assert {name: len(cells[0]["runs"]) for name, cells in found.items()} == {
        "lakesplice": 2,
        "pyarrow": 2,
    }
    assert all(cells[0]["right"] for cells in found.values())


def test_a_failing_contender_is_reported_with_its_output(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such jar')"]
    process = ContenderProcess("peer", command, tmp_path / "peer.log", tmp_path)
    with closing(process), pytest.raises(RuntimeError, match=r"peer ended:\nno such jar"):
        process.ready()


def test_the_splice_of_one_file_is_timed_beside_copy_and_rewrite(
    source: Path, tmp_path: Path
) -> None:
    task = {"work": str(tmp_path), "parts": [source], "megabytes": 0.01}
    found = splice_one(OneFile(task), 1)
    assert all(set(one["seconds"]) == {"splice", "plain", "copy"} for one in found)


def test_the_report_states_ratios_and_wrong_sums(tmp_path: Path) -> None:
    figures = _figures()
    page = report.document(figures)
    row = "| 5 % | 3 | uniform | 1.00 | 2.00 | 12.00 | 6.00 | 12.0× | 6.0× | 3.0× |"
    assert row in page
    assert "some differ**: delta-rs 05-03-uniform" in page
    row = "| 5 % | 3 | uniform | 2.00 | 12.00 (6.0×) | 6.00 (3.0×) | 4.00 (1.6×) |"
    assert row in page
    row = "| 5 % | 23 (3) | uniform | 2.00 | 1.00 | 3.00 | 1.5× | 3.0× |"
    assert row in page
    assert "| one row, 3 columns | 0.300 | 0.200 | 3.000 | 0.100 | 0.10 |" in page
    assert "+2.0%" in page
    assert "| duckdb | 1.000 | 0.900 | 0.900 |" in page
    aim = "merge step at least 10 times as fast as Delta: at most 3 columns, up to 20 %"
    assert f"| {aim} | 12.00 | 05-03-uniform | yes |" in page
    assert "scanned at 0.95 of the speed | 0.90 | duckdb | **no** |" in page
    picture = ET.fromstring(report.plot(figures["grid"]))
    assert len([e for e in picture.iter() if e.tag.endswith("circle")]) == 8


def _sums(rows: pa.Table, changes: pa.Table, names: Sequence[str]) -> dict[str, str]:
    new = {tuple(row[key] for key in KEY): row for row in changes.to_pylist()}
    truth = [new.get(tuple(row[key] for key in KEY), row) for row in rows.to_pylist()]
    return {name: str(pc.sum(pa.array([row[name] for row in truth])).as_py()) for name in names}


def _figures() -> dict[str, Any]:
    def cell(right: bool = True, **seconds: float) -> list[dict[str, Any]]:
        return [{"cell": "05-03-uniform", "runs": [seconds] * 3, "right": right}]

    def whole_rows(**seconds: float) -> list[dict[str, Any]]:
        name = Cell(0.05, COLUMNS, "uniform", 3).name
        return [{"cell": name, "runs": [seconds], "right": True}]

    grid = {
        "lakesplice": cell(upsert=1.0, merge=1.0, whole=2.0),
        "delta": cell(whole=12.0),
        "delta-vectors": cell(whole=6.0),
    }
    one = {"splice": [0.3], "plain": [3.0], "copy": [0.2]}
    wear = {
        "splices": 50,
        "bytes_worn": 102,
        "bytes_fresh": 100,
        "bytes_before": 100,
        "scan_seconds": {"duckdb": {"worn": [1.0], "fresh": [0.9]}},
    }
    return {
        "machine": {"cores": 2, "python": "3.11"},
        "grid": {"scale": 1.0, "rows": 100, "contenders": grid},
        "rows": {
            "contenders": {
                "lakesplice": whole_rows(upsert=0.5, merge=1.5, whole=2.0),
                "lakesplice-merged": whole_rows(merge=1.0, whole=1.0),
                "delta-rs": whole_rows(whole=3.0),
            },
        },
        "peers": {
            "contenders": {"delta-rs": cell(right=False, whole=4.0)},
            "beside": {"delta-rs": cell(merge=1.0, whole=2.5)},
        },
        "files": {
            "one_file": [{"change": "one row, 3 columns", "bytes": 1 << 27, "seconds": one}],
            "wear": wear,
        },
    }


def test_the_memory_of_splices_is_measured_and_reported(tmp_path: Path) -> None:
    make_large(tmp_path / "large.parquet", 1)
    source = tmp_path / "large.parquet"
    task = {"source": str(source), "threads": 2}
    found = [
        peak({**task, "change": change, "changes": str(make_large_changes(source, change))})
        for change in CHANGES
    ]
    assert all(one["peak_bytes"] > 1e6 and one["pages_encoded"] for one in found)
    assert not (tmp_path / "target.parquet").exists()
    # This process may hold more than that; the benchmark measures each in one of its own.
    for one in found:
        one["peak_bytes"] = 200_000_000
    found[-1]["peak_bytes"] = 310_000_000
    page = report.document({**_figures(), "memory": found})
    worst = list(CHANGES)[-1]
    assert f"| {worst} | 310 |" in page
    assert f"| a file of 2 GB is spliced within 300 MB | 310.00 | {worst} | **no** |" in page
