"""Compactions of small tables with few changes, as a fleet has by the hundred, beside their peer.

Run: python -m benchmarks.small_compactions [--rows 500,10000] [--repeats 5] [--out FILE]

Ten rows change in each of three batches, and the three deltas wait. Each turn compacts the table as
the service does, with the commit. `spliced` is the same work by a splice, as in larger files, and
without a commit. The peer is delta-rs in the same process: it merges the same rows into a table of
its own. The floor is what any rewrite of the file needs: pyarrow reads it and writes it again. The
figures are medians of milliseconds of the processor, of all threads.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from lakesplice.planning.upkeep.compaction import work
from lakesplice.spark.jobs.rewrites import RewriteTask, rewritten
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import open_sink
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.upkeep.compact import compact_files, splice_of
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, TableSpec
from lakesplice.testing.shop.columns import bigint, decimal, integer, varchar
from lakesplice.testing.shop.database import Row
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic

_TEXTS = tuple(varchar(f"text_{number}") for number in range(3))
_COLUMNS = (
    bigint("id", optional=False),
    *_TEXTS,
    integer("amount"),
    integer("state"),
    bigint("number"),
    decimal("price", 12, 2),
)
SPEC = TableSpec("goods", _COLUMNS, ("id",))
_DELTAS, _CHANGES = 3, 10


class Goods:
    """A table of ours, and one of delta-rs with the same rows."""

    def __init__(self, folder: Path, rows: int) -> None:
        self._database, self._random = Database([SPEC], seed=1), random.Random(1)
        self._rows, self._peer = rows, str(folder / "peer")
        self._database.insert(SPEC.name, [_row(key) for key in range(rows)])
        self._topic = SimulatedTopic(self._database.topic(SPEC.name), 1)
        store = LocalStore(folder / "ours")
        self._driver = SimulatedDriver(store, self._topic, FixedClock(), SeededEntropy(1))
        self._ingest()
        write_deltalake(self._peer, self._present())

    def change(self) -> pa.Table:
        """Let deltas wait; return the changed rows as they are now."""
        keys: list[int] = []
        for _ in range(_DELTAS):
            some = self._random.sample(range(self._rows), _CHANGES)
            self._database.update(SPEC.name, [(key,) for key in some], self._changed)
            self._ingest()
            keys += some
        present = self._present()
        return present.take(pa.array(sorted({*keys})))

    def ours(self) -> None:
        """Compact the table and commit."""
        table, task = self._driver.table, self._task()
        table.commit(splice_of(table.generation, table.version, [rewritten(task)]))

    def spliced(self) -> None:
        """Compact the table by a splice, without a commit."""
        task = self._task()
        compact_files(task.store, task.manifest, task.paths, task.rewriter, task.entropy)

    def merge(self, changed: pa.Table) -> None:
        """Merge the changed rows into the table of delta-rs."""
        table = DeltaTable(self._peer)
        merging = table.merge(changed, "t.id = s.id", source_alias="s", target_alias="t")
        merging.when_matched_update_all().execute()

    def rewrite(self) -> None:
        """Read the base file and write it again, with nothing else."""
        store = self._driver.table.store
        ((path, _),) = self._driver.table.manifest.files.items()
        sink = pa.BufferOutputStream()
        pq.write_table(pq.read_table(store.open(path)), sink, compression="zstd")

    def _task(self) -> RewriteTask:
        store, manifest = self._driver.table.store, self._driver.table.manifest
        paths = tuple(one.path for one in work(manifest))
        return RewriteTask(store, manifest, paths, best_rewriter(open_sink), SystemEntropy())

    def _ingest(self) -> None:
        self._topic.append(0, self._database.drain())
        self._driver.batch()

    def _changed(self, row: Row) -> Row:
        return (row[0], "changed", *row[2:4], self._random.randrange(1_000), *row[5:])

    def _present(self) -> pa.Table:
        rows = [self._database.values(SPEC.name, (key,)) for key in range(self._rows)]
        columns = zip(*rows, strict=True)
        return pa.table(dict(zip([c.name for c in _COLUMNS], map(pa.array, columns), strict=True)))


def _row(key: int) -> Row:
    return (key, "new", f"note {key} {'x' * (key % 40)}", f"t{key}", key % 97, 1, key * key, key)


def measure(rows: int, repeats: int) -> dict[str, Any]:
    """Take turns; return the medians."""
    spent: dict[str, list[float]] = {}

    def timed(name: str, run: Callable[[], None]) -> None:
        began = time.process_time()
        run()
        spent.setdefault(name, []).append(1_000 * (time.process_time() - began))

    with tempfile.TemporaryDirectory(prefix="bench-small-") as folder:
        goods = Goods(Path(folder), rows)
        for _ in range(repeats + 1):
            changed = goods.change()
            timed("floor", goods.rewrite)
            timed("spliced", goods.spliced)
            timed("ours", goods.ours)
            timed("delta-rs", partial(goods.merge, changed))
    medians = {name: round(statistics.median(each[1:]), 1) for name, each in spent.items()}
    return {"rows": rows, "changes": _DELTAS * _CHANGES, "milliseconds": medians}


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="500,10000")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = [measure(rows, args.repeats) for rows in map(int, args.rows.split(","))]
    print(json.dumps(found, indent=2))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
