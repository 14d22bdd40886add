"""How long a table takes to open after many commits.

Run: python -m benchmarks.opening [--commits N] [--out FILE]

Rows of a table that is fed by hand are updated, one commit after another, with a compaction after
each eighth. The table keeps all its versions, so its log grows with each commit. After 100, 1,000,
10,000 and so on it is opened, by Lakesplice and by deltalake, which is the peer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from lakesplice import Table

_ROWS, _COMPACTED_EVERY, _OPENINGS, _FIRST = 1_000, 8, 31, 100
_SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64())])


def opening(root: Path, commits: int) -> list[dict[str, float]]:
    """Make so many commits, and return what opening took after powers of ten of them."""
    table = Table.create(root, _SCHEMA, key=["id"])
    ids = range(_ROWS)
    table.upsert(pa.table({"id": ids, "n": ids}, schema=_SCHEMA))
    found, due = list[dict[str, float]](), _FIRST
    for number in range(commits):
        table.upsert(pa.table({"id": [number % _ROWS], "n": [number]}, schema=_SCHEMA))
        if number % _COMPACTED_EVERY == 0:
            table.compact()
        made = Table.open(root).version + 1 if number + 1 >= due - due // 5 else 0
        if made >= due:
            ours = _milliseconds(lambda: Table.open(root))
            peer = _milliseconds(lambda: DeltaTable(root))
            files = sum(1 for _ in (root / "_delta_log").iterdir())
            found.append(
                {"commits": made, "log_files": files, "ours_ms": ours, "deltalake_ms": peer}
            )
            print(found[-1], flush=True)
            due *= 10
        if made > commits:
            break
    return found


def _milliseconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(_OPENINGS):
        started = time.perf_counter()
        work()
        taken.append(1_000 * (time.perf_counter() - started))
    return round(statistics.median(taken), 2)


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-opening-") as work:
        found = opening(Path(work) / "table", args.commits)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
