"""The most memory that splices of one large file take, each in a process of its own.

Run: python -m benchmarks.splice.memory '{"work": …, "megabytes": 2048, "out": …}'

What is measured is anonymous memory (RssAnon of /proc/self/status), a few hundred times a second:
pages of a mapped file are the system's to drop. The file's chunks are of hundreds of megabytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lakesplice

# Nothing else is imported, since that would be measured too.
Figures = dict[str, Any]
# Changed rows, those of the newest or anywhere, and in which columns.
CHANGES: Mapping[str, tuple[int, str, tuple[str, ...]]] = {
    "one row, all columns": (1, "uniform", ("number", "label", "note")),
    "newest 200,000 rows, all columns": (200_000, "newest", ("number", "label", "note")),
    "200,000 rows anywhere, one column": (200_000, "uniform", ("number",)),
    "200,000 rows anywhere, all columns": (200_000, "uniform", ("number", "label", "note")),
}
_SEED = 20261121
_ROW_GROUPS = 2
_BYTES_PER_ROW = 29.0  # measured; the labels cost nothing
_LABELS = pa.array(["x" * 200 + str(at) for at in range(10)])
_SECONDS_BETWEEN = 0.003


def make(path: Path, megabytes: int) -> None:
    """Write a file of about so many megabytes in two row groups."""
    rows = round(megabytes * 2**20 / _BYTES_PER_ROW / _ROW_GROUPS)
    random = np.random.default_rng(_SEED)
    writer = None
    for group in range(_ROW_GROUPS):
        table = pa.table(
            {
                "id": np.arange(group * rows, (group + 1) * rows),
                "number": random.random(rows),
                "label": pa.DictionaryArray.from_arrays(
                    pa.array(random.integers(0, len(_LABELS), rows, np.int32)), _LABELS
                ),
                "note": pa.array(_notes(random, rows)),
            }
        )
        if writer is None:
            layout = {"write_page_index": True, "write_page_checksum": True}
            writer = pq.ParquetWriter(
                path, table.schema, compression="zstd", max_rows_per_page=4096,
                store_schema=False, use_dictionary=["label"], **layout,
            )  # fmt: skip
        writer.write_table(table, row_group_size=rows)
    assert writer is not None
    writer.close()


def _notes(random: np.random.Generator, rows: int) -> Any:
    """Texts of 22 letters that compress badly."""
    return random.integers(40, 126, rows * 22, np.uint8).view("S22")


def make_changes(source: Path, change: str) -> Path:
    """Write the changes of that name for a file beside it."""
    count, spread, columns = CHANGES[change]
    rows = pq.read_metadata(source).num_rows
    random = np.random.default_rng(_SEED)
    at = np.arange(rows - count, rows)
    if spread == "uniform":
        at = np.unique(random.integers(0, rows, count))
    values = {"number": random.random(len(at)), "note": at.astype(str), "label": at % 100}
    given = {name: pa.array(values[name]) for name in columns}
    if "label" in given:
        given["label"] = given["label"].cast(pa.string())
    path = source.with_name("changes.parquet")
    pq.write_table(pa.table({"id": at, **given}), path)
    return path


def peak(task: Mapping[str, Any]) -> Figures:
    """Splice the file as the task says and return the most memory that was seen."""
    source, target = Path(task["source"]), Path(task["source"]).with_name("target.parquet")
    with watched() as seen:
        done = lakesplice.splice_file(
            source, task["changes"], target, key="id", threads=task["threads"]
        )
    target.unlink()
    return {
        "change": task["change"],
        "bytes": done.bytes_before,
        "threads": task["threads"],
        "pages_encoded": done.pages_encoded,
        "whole": dict(done.encoded_whole),
        "seconds": done.seconds,
        "rows_changed": done.rows_changed,
        "peak_bytes": seen[0],
    }


def anonymous_bytes() -> int:
    """Return what this process holds that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "RssAnon":
            return int(value.split()[0]) * 1024
    raise RuntimeError("this system doesn't tell RssAnon")


@contextmanager
def watched() -> Iterator[list[int]]:
    """Yield a list of one number: the most anonymous memory that was seen within."""
    seen, over = [anonymous_bytes()], threading.Event()

    def watch() -> None:
        while not over.wait(_SECONDS_BETWEEN):
            seen[0] = max(seen[0], anonymous_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def main() -> None:
    """Make the file and measure every change in a process, or one of them in this one."""
    task: Figures = json.loads(sys.argv[1])
    if "change" in task:
        print(json.dumps(peak(task)))
        return
    source = Path(task["work"]) / "large.parquet"
    if not source.exists():
        make(source, task["megabytes"])
    found = []
    for change in CHANGES:
        started = time.monotonic()
        changes = make_changes(source, change)
        one = {"source": str(source), "changes": str(changes), "change": change}
        one["threads"] = task["threads"]
        command = [sys.executable, "-m", "benchmarks.splice.memory", json.dumps(one)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
        taken = time.monotonic() - started
        print(f"{change}: {found[-1]['peak_bytes'] / 1e6:.0f} MB, {taken:.1f} s", flush=True)
    Path(task["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
