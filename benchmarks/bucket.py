"""A splice in a bucket: bytes that pass through the process, beside those of a plain rewrite.

Run: python -m benchmarks.bucket [--megabytes 1024] [--folder DIR]

A base file of store_sales (TPC-DS) lies in a bucket of a real S3 server on this machine; the newest
1 % of its rows change, in one, three or all columns. All requests go through a proxy that counts
the bytes of their bodies, both ways. The peer reads the whole file and writes it anew, as does
every engine that can't copy inside the store. Figures go to docs/benchmarks/figures/bucket.json.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.splice.data import KEY, SEED, changed_columns, make_store_sales
from benchmarks.splice.one_file import system_edits
from lakesplice.formats.parquet import write_base
from lakesplice.model.address import BaseFile, Segment
from lakesplice.planning.by_hand.hand_fed_changes import base_rows
from lakesplice.planning.by_hand.hand_fed_schema import hand_fed_schema, stored_rows
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.stores import AnyStore, open_sink, open_store
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.files.plain_rewrite import PlainRewriter
from lakesplice.table.protocol.ports import Rewriter
from lakesplice.table.upkeep.compact import rewrite_base
from lakesplice.testing.s3_proxy import S3Proxy
from lakesplice.testing.s3_server import S3Server, options

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "bucket.json"
SHARE_MAX = 0.05
COLUMNS = (1, 3, 23)
SHARE = 0.01
MIB = 1 << 20
_ROWS_PER_MEGABYTE = 28_400
_ROWS_AT_A_TIME = 500_000


class Sales:
    """Rows of store_sales, again and again: nothing here looks for a key."""

    def __init__(self, part: Path, megabytes: int) -> None:
        self._some = pq.read_table(part)
        self.total = megabytes * _ROWS_PER_MEGABYTE
        self.schema = hand_fed_schema(self._some.schema, KEY)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows as they are stored."""
        now, left = pa.scalar(0, pa.timestamp("us", tz="UTC")), self.total
        while left:
            for at in range(0, min(self._some.num_rows, left), _ROWS_AT_A_TIME):
                part = self._some.slice(at, min(_ROWS_AT_A_TIME, left))
                yield base_rows(stored_rows(part, self.schema), 0, now, self.schema)
                left -= part.num_rows

    def edits(self, columns: int) -> Edits:
        """The edits of an upsert of the newest rows, in so many columns and the system's own."""
        count = round(self.total * SHARE)
        at = np.arange(self.total - count, self.total)
        chosen = pa.array(np.random.default_rng(SEED).integers(0, self._some.num_rows, count))
        found = {
            name: ColumnEdit(at, self._some.column(name).take(chosen).combine_chunks())
            for name in changed_columns(self._some.schema, columns)
        }
        return Edits(at, found | system_edits(at, 1))


class Bench:
    """One base file in a bucket, and the proxy that watches who reads it."""

    def __init__(self, server: S3Server, proxy: S3Proxy, sales: Sales) -> None:
        self._proxy, self.sales = proxy, sales
        root = f"s3://{server.make_bucket()}/lake"
        self._store: AnyStore = open_store(root, options(proxy.endpoint))
        self.base = self._put(open_store(root, options(server.endpoint)))
        self._number = 0

    def rewritten(self, rewriter: Rewriter, edits: Edits) -> Mapping[str, Any]:
        """Rewrite the file; returns bytes each way, requests, seconds and counts."""
        self._number += 1
        self._proxy.reset()
        started = time.monotonic()
        with (
            self._store.open("sales", self.base.tail_bytes) as source,
            self._store.writer(f"next-{self._number}") as sink,
        ):
            done = rewriter.rewrite(source, self.base, edits, self.sales.schema, sink)
        return self._seen(started, done.counts)

    def merged(self, rewriter: Rewriter, edits: Edits) -> Mapping[str, Any]:
        """Rewrite the file and look at what was written, as compaction does before its commit."""
        self._proxy.reset()
        started = time.monotonic()
        schema, entropy = self.sales.schema, SystemEntropy()
        store, file = self._store, self.base
        with store.open(file.path, file.tail_bytes) as source:
            _, counts = rewrite_base(
                store=store,
                source=source,
                file=file,
                edits=edits,
                schema=schema,
                rewriter=rewriter,
                entropy=entropy,
            )
        return self._seen(started, counts)

    def _seen(self, started: float, counts: Mapping[str, int]) -> Mapping[str, Any]:
        seconds = time.monotonic() - started
        seen = self._proxy.seen()
        return {
            "seconds": seconds,
            "requests": len(seen),
            "copies": sum(request.copied for request in seen),
            "sent": sum(request.sent for request in seen),
            "received": sum(request.received for request in seen),
            "counts": dict(counts),
        }

    def _put(self, store: AnyStore) -> BaseFile:
        with store.writer("sales") as sink:
            written = write_base(
                self.sales.tables(), self.sales.schema, sink, self._store.row_group_bytes
            )
        size = store.size("sales")
        assert size is not None
        return BaseFile(
            "sales", size, (Segment(1, written.rows),), tail_bytes=size - written.pages_end
        )


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        work = Path(folder)
        part = work / "store_sales.parquet"
        make_store_sales(part, 1)
        sales = Sales(part, args.megabytes)
        with S3Server(work / "s3") as server, S3Proxy(server.port) as proxy:
            bench = Bench(server, proxy, sales)
            found = measured(bench)
    args.out.write_text(json.dumps(found, indent=1) + "\n")


def measured(bench: Bench) -> Mapping[str, Any]:
    """Return the figures of all cells; prints them."""
    splice = best_rewriter(open_sink, os.cpu_count() or 1, ScratchFile)
    cells, size = [], bench.base.bytes
    for columns in COLUMNS:
        edits = bench.sales.edits(columns)
        ways = {
            "splice": bench.rewritten(splice, edits),
            "with its checks": bench.merged(splice, edits),
        }
        if columns == COLUMNS[0]:
            ways["plain"] = bench.rewritten(PlainRewriter(), edits)
        cells.append({"columns": columns, "ways": ways})
        for name, way in ways.items():
            share = (way["sent"] + way["received"]) / size
            print(
                f"{columns} columns, {name}: {way['sent'] / MIB:.1f} MiB sent,"
                f" {way['received'] / MIB:.1f} received, {share:.3f} of the file,"
                f" {way['requests']} requests, {way['copies']} copies, {way['seconds']:.1f} s",
                flush=True,
            )
    return {"bytes": size, "share_max": SHARE_MAX, "cells": cells}


if __name__ == "__main__":
    main()
