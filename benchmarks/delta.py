"""What each step between rows with keys and decoded deltas costs per row, beside its limit.

Run: python -m benchmarks.delta [--rows N] [--shares 0.2,0.5] [--repeats N]. Seeded; nanoseconds of
the processor per changed row, one thread, the least of runs that take turns. The rows are
store_sales (TPC-DS, 23 columns, whole rows) in no order; a share of N rows is changed.

A step's limit is what a library or the memory needs at least for the same: BLAKE3 of ready keys,
one search in one sorted array, a copy of the rows, one pass over the bytes. Encoding and decoding
have peers instead: deltas in Avro, which earlier versions wrote, Polars' Avro without our header
and with decimals as doubles, and Arrow IPC, with LZ4 as deltas have it.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import polars_hash as plh
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from benchmarks.splice.data import KEY, make_store_sales
from lakesplice.formats.deltas import decode_delta, encode_delta
from lakesplice.formats.deltas.codec import in_address_order
from lakesplice.formats.rowindex import Entries
from lakesplice.formats.rowindex.encode import encode_run
from lakesplice.formats.rowindex.run import Run
from lakesplice.model.arrays import KeyHashes, RowAddresses
from lakesplice.model.change import delta_schema
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import updates
from lakesplice.planning.by_hand.hand_fed_schema import hand_fed_schema
from lakesplice.planning.rows.index_merge import sorted_entries
from lakesplice.planning.rows.keyhash import canonical_keys, key_hash
from lakesplice.planning.rows.locate import locate
from lakesplice.planning.rows.row_digest import column_words, contiguous, row_digest
from lakesplice.testing.older_deltas import encode_avro_delta

SEED = 18
ROWS_PER_SCALE = 2_880_404
FEW = (*KEY, "ss_net_profit")
Step = Callable[[], object]


class Changed:
    """Some rows of a table, in no order, and all that a step needs to be measured by itself."""

    def __init__(self, table: pa.Table, share: float) -> None:
        chance = np.random.default_rng(SEED)
        count = int(table.num_rows * share)
        picked = chance.permutation(table.num_rows)[:count]
        self.rows = table.take(pa.array(picked)).combine_chunks()
        self.schema: TableSchema = hand_fed_schema(table.schema, KEY)
        self.keys = key_hash(self.rows, self.schema)
        every = key_hash(table, self.schema)
        self.run = _run(every)
        self.sorted_high = np.sort(every.high)
        self.addresses = RowAddresses(np.zeros(count, np.int64), picked)
        self.changes = updates(
            self.rows, np.zeros(count, np.bool_), self.addresses, 7, _NOW, self.schema
        )
        self.ordered = in_address_order(self.changes, self.schema)
        self.delta = encode_delta(self.ordered, self.schema)
        self.older = encode_avro_delta(self.ordered, self.schema)

    def steps(self) -> dict[str, tuple[Step, dict[str, Step]]]:
        """Each step, with its limit or its peers."""
        return {**self._key_steps(), **self._file_steps()}

    def _key_steps(self) -> dict[str, tuple[Step, dict[str, Step]]]:
        keys = pl.DataFrame(
            {"key": pl.Series(canonical_keys(self.rows, self.schema).combine_chunks())}
        )
        ordered, schema = self.ordered, self.schema
        live = np.zeros(1, np.int64)
        return {
            "hash the keys": (
                lambda: key_hash(self.rows, schema),
                {"BLAKE3 of ready keys": lambda: keys.select(plh.col("key").chash.blake3())},
            ),
            "locate": (
                lambda: locate([self.run], self.keys, live),
                {
                    "one search in one array": lambda: np.searchsorted(
                        self.sorted_high, self.keys.high
                    )
                },
            ),
            "sort by address": (
                lambda: in_address_order(self.changes, schema),
                {"a copy of the rows": lambda: _copied(ordered)},
            ),
            "digest": (
                lambda: row_digest(self.rows, schema),
                {"one pass over the words": lambda: _xor(self.rows, schema)},
            ),
        }

    def _file_steps(self) -> dict[str, tuple[Step, dict[str, Step]]]:
        ordered, schema = self.ordered, self.schema
        plain = _without_decimals(ordered)
        stream, avro = _ipc(ordered), _polars_avro(plain)
        facts = [name for name in delta_schema(schema).names if name not in schema.names]
        few = [*facts, *FEW]
        return {
            "encode": (
                lambda: encode_delta(ordered, schema),
                {
                    "Polars' Avro": lambda: _polars_avro(plain),
                    "Arrow IPC": lambda: _ipc(ordered),
                },
            ),
            "decode": (
                lambda: decode_delta(self.delta, schema, schema.version, path="a delta"),
                {
                    "Avro, as before": lambda: decode_delta(
                        self.older, schema, schema.version, path="a delta"
                    ),
                    "Polars' Avro": lambda: pl.read_avro(io.BytesIO(avro)),
                    "Arrow IPC": lambda: ipc.open_file(pa.BufferReader(stream)).read_all(),
                },
            ),
            "decode 3 of 23 columns": (
                lambda: decode_delta(self.delta, schema, schema.version, path="x", columns=few),
                {
                    "Avro, as before": lambda: decode_delta(
                        self.older, schema, schema.version, path="x", columns=few
                    ),
                },
            ),
        }


_NOW = pa.scalar(1_795 * 10**12).cast(pa.timestamp("us", "UTC"))


def _run(keys: KeyHashes) -> Run:
    rows = np.arange(len(keys.high))
    entries, _ = sorted_entries(Entries(keys.high, keys.low, np.zeros_like(rows), rows))
    return Run.from_buffer(encode_run(*entries), "a run")


def _without_decimals(table: pa.Table) -> pl.DataFrame:
    fields = [
        pa.field(f.name, pa.float64())
        if pa.types.is_decimal(f.type)
        else pa.field(f.name, pa.timestamp("us"))
        if pa.types.is_timestamp(f.type)
        else pa.field(f.name, pa.int32())
        if f.type in (pa.int8(), pa.int16())
        else f
        for f in table.schema
    ]
    frame = pl.from_arrow(table.cast(pa.schema(fields)))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _polars_avro(frame: pl.DataFrame) -> bytes:
    sink = io.BytesIO()
    frame.write_avro(sink, name="change")
    return sink.getvalue()


def _ipc(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _copied(table: pa.Table) -> list[bytes]:
    buffers = (b for c in table.columns for chunk in c.chunks for b in chunk.buffers())
    return [bytes(buffer) for buffer in buffers if buffer is not None]


def _xor(rows: pa.Table, schema: TableSchema) -> list[int]:
    columns = {column.name: column for column in schema.columns}
    return [
        int(np.bitwise_xor.reduce(word))
        for name in rows.column_names
        for word in column_words(contiguous(rows.column(name)), columns[name].type)
    ]


def measured(
    steps: dict[str, tuple[Step, dict[str, Step]]], repeats: int
) -> dict[tuple[str, str], float]:
    """The least seconds of the processor that each step and each of its limits takes."""
    all_steps = {
        (name, limit): step
        for name, (ours, limits) in steps.items()
        for limit, step in [("", ours), *limits.items()]
    }
    seconds: dict[tuple[str, str], list[float]] = {name: [] for name in all_steps}
    for turn in range(repeats + 1):
        for at, step in all_steps.items():
            start = time.process_time()
            step()
            if turn:  # the first turn warms up
                seconds[at].append(time.process_time() - start)
    return {at: min(taken) for at, taken in seconds.items()}


def main() -> None:
    """Print each step's cost and that of its limits, in nanoseconds per changed row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=700_000)
    parser.add_argument("--shares", default="0.2,0.5")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store_sales.parquet"
        make_store_sales(path, options.rows / ROWS_PER_SCALE)
        table = pq.read_table(path)
    for share in map(float, options.shares.split(",")):
        changed = Changed(table, share)
        count = changed.rows.num_rows
        print(
            f"{share:.0%} of {table.num_rows:,} rows: {len(changed.delta) / count:.0f} bytes per"
            f" change, {len(changed.older) / count:.0f} in Avro"
        )
        found = measured(changed.steps(), options.repeats)
        for (name, limit), seconds in found.items():
            label = f"    {limit}" if limit else name
            print(f"  {label:32} {seconds / count * 1e9:7.0f} ns")


if __name__ == "__main__":
    main()
