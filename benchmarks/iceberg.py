"""How long an Iceberg mirror takes to follow a compaction that changed some of many base files.

Run: python -m benchmarks.iceberg [--files 50] [--changed 5] [--repeats 7] [--out FILE]

A table of `files` base files has a mirror in a SQL catalog, another one in Iceberg's own REST
server. Each turn changes 200 rows in each of `changed` files and compacts them; then the mirror
follows. The peer does the same without us: pyiceberg overwrites the rows of as many files in a
table of the same rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyiceberg.catalog import load_catalog

from lakesplice import Table
from lakesplice.model.names import TableName
from lakesplice.spark.jars import ensure_jars
from lakesplice.storage.iceberg.catalog import open_mirror
from lakesplice.storage.stores import open_store
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.testing.servers.iceberg_rest import ICEBERG_REST, IcebergRestServer

_ROWS_PER_FILE, _ROWS_CHANGED, _COLUMNS = 20_000, 200, 8
_NAME = TableName("s", "sales")
_RANDOM = np.random.default_rng(1)
Properties = dict[str, str]


class Mirrored:
    """A table of some base files, with a mirror in a catalog."""

    def __init__(self, place: Path, catalog: Properties) -> None:
        self._place, self._catalog = place, catalog
        self.follow()

    def change(self, files: list[int]) -> None:
        """Change rows of these files, and compact them."""
        table = Table.open(self._place)
        for file in files:
            table.upsert(_rows(file, _ROWS_CHANGED))
        table.compact()

    def follow(self) -> None:
        """Let the mirror follow."""
        store = open_store(self._place)
        mirror = open_mirror(self._catalog, store, _NAME)
        done = Mirror(store, mirror, SystemEntropy()).follow(open_snapshot(store))
        if not done.is_current:
            raise RuntimeError("the mirror didn't follow")


def measured(work: Path, files: int, changed: int, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each turn, by contender."""
    place, other = work / "sql" / "s" / "sales", work / "rest" / "s" / "sales"
    table = Table.create(place, _rows(0), key=["id"])
    for file in range(1, files):
        table.upsert(_rows(file))
    shutil.copytree(place, other)
    (work / "server").mkdir()
    found: defaultdict[str, list[float]] = defaultdict(list)
    with IcebergRestServer(ensure_jars(ICEBERG_REST), work / "server") as server:
        mirrors = {
            "mirror, SQL catalog": Mirrored(place, _sqlite(work / "ours.db")),
            "mirror, REST catalog": Mirrored(other, server.properties()),
        }
        overwrite = _pyiceberg(work, files)
        for turn in range(repeats + 1):
            chosen = [(turn * changed + at) % files for at in range(changed)]
            rows = pa.concat_tables([_rows(file) for file in chosen])
            for name, mirror in mirrors.items():
                mirror.change(chosen)
                found[name].append(_seconds(mirror.follow))
            found["pyiceberg overwrites"].append(_seconds(partial(overwrite, rows, chosen)))
    # The first turn warms up.
    return {name: seconds[1:] for name, seconds in found.items()}


def _pyiceberg(work: Path, files: int) -> Callable[[pa.Table, list[int]], None]:
    """Make the peer's table; return what overwrites the rows of some of its files."""
    catalog = load_catalog("peer", **_sqlite(work / "peer.db"), warehouse=f"file://{work}/peer")
    catalog.create_namespace("s")
    table = catalog.create_table("s.sales", schema=_rows(0).schema)
    for file in range(files):
        table.append(_rows(file))
    return lambda rows, chosen: table.overwrite(
        rows, overwrite_filter=f"file in ({', '.join(map(str, chosen))})"
    )


def _rows(file: int, count: int = _ROWS_PER_FILE) -> pa.Table:
    ids = np.arange(count) + file * _ROWS_PER_FILE
    values = {f"v{at}": _RANDOM.integers(0, 1 << 30, count) for at in range(_COLUMNS)}
    return pa.table({"id": ids, **values, "file": np.full(count, file)})


def _sqlite(path: Path) -> Properties:
    return {"type": "sql", "uri": f"sqlite:///{path}"}


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 3)


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--changed", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-iceberg-") as work:
        seconds = measured(Path(work), args.files, args.changed, args.repeats)
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    print(json.dumps(medians, indent=2))
    if args.out:
        found = {"files": args.files, "changed": args.changed, "medians": medians}
        args.out.write_text(json.dumps(found | {"seconds": seconds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
