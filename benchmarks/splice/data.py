"""TPC-DS store_sales and what changes in it, as Parquet files that every contender starts from."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = ("ss_item_sk", "ss_ticket_number")
# The columns that change, in this order: one, three, or all that are not the key.
FIRST = ("ss_net_profit", "ss_quantity", "ss_sales_price")
COLUMNS = 23
SEED = 20261121


@dataclass(frozen=True, slots=True)
class Cell:
    """How much changes: `share` of the rows, so many of 23 columns, rows `uniform` or `newest`.

    With `new`, only so many of the columns that are given get other values than they have.
    """

    share: float
    columns: int
    spread: str
    new: int | None = None

    @property
    def name(self) -> str:
        """For files and logs, such as `05-03-uniform`, or `05-23(3)-uniform` with 3 `new`."""
        new = "" if self.new is None else f"({self.new})"
        return f"{round(self.share * 100):02d}-{self.columns:02d}{new}-{self.spread}"


SHARES = (0.05, 0.2, 0.5)
GRID = tuple(
    Cell(share, columns, spread)
    for spread in ("uniform", "newest")
    for columns in (1, 3, COLUMNS)
    for share in SHARES
)
# Whole rows of which most values are those that there are: what nightly loads bring.
WHOLE_ROWS = tuple(
    Cell(share, COLUMNS, spread, new)
    for share, spread, new in (
        (0.05, "uniform", len(FIRST)),
        (0.2, "uniform", len(FIRST)),
        (0.2, "uniform", 0),
    )
)
# Where every peer is measured.
SIX = (
    Cell(0.05, 3, "uniform"),
    Cell(0.2, 3, "uniform"),
    Cell(0.5, 3, "uniform"),
    Cell(0.05, 3, "newest"),
    Cell(0.05, 1, "uniform"),
    Cell(0.2, COLUMNS, "uniform"),
)
LARGE = (Cell(0.05, 3, "uniform"), Cell(0.2, 3, "uniform"), Cell(0.05, 3, "newest"))


def make_store_sales(path: Path, scale: float) -> int:
    """Write store_sales by DuckDB's own generator, in its order, and return its rows."""
    extension = resources.files("duckdb_extension_tpcds")
    file = next(Path(str(extension)).rglob("tpcds.duckdb_extension"))
    # On disk: at scale 10 all tables together are larger than many a memory.
    database = path.with_suffix(".duckdb")
    with duckdb.connect(
        str(database), config={"allow_unsigned_extensions": "true", "memory_limit": "6GB"}
    ) as connection:
        connection.execute(f"load '{file}'")
        connection.execute(f"call dsdgen(sf={scale})")
        reader = connection.execute("from store_sales").to_arrow_reader(1 << 18)
        rows = 0
        with pq.ParquetWriter(path, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
    database.unlink()
    return rows


def store_sales(folder: Path, rows: int) -> pa.Table:
    """Return the first rows of store_sales at scale 1; `folder` has to be another one each time."""
    made = folder / "store_sales.parquet"
    make_store_sales(made, 1)
    return pq.read_table(made).slice(0, rows)


def changed_columns(schema: pa.Schema, columns: int) -> tuple[str, ...]:
    """Return the names of the columns that change: of all 23, those outside the key."""
    others = [name for name in schema.names if name not in (*KEY, *FIRST)]
    return tuple([*FIRST, *others][: columns if columns < COLUMNS else COLUMNS - len(KEY)])


def make_changes(source: Path, cell: Cell, path: Path) -> int:
    """Write a cell's changes, the key and the new values, and return how many rows they are."""
    file = pq.ParquetFile(source)
    names = changed_columns(file.schema_arrow, cell.columns)
    total: int = file.metadata.num_rows
    count: int = max(1, round(total * cell.share))
    random = np.random.default_rng([SEED, round(cell.share * 100), cell.columns])
    if cell.spread == "newest":
        chosen = np.arange(total - count, total)
    else:
        chosen = np.sort(random.choice(total, count, replace=False))
    rows = pq.read_table(source, columns=[*KEY, *names]).take(pa.array(chosen))
    for name in names[: cell.new]:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), _changed(rows.column(at), random))
    # In no order that would help anybody find the rows.
    rows = rows.take(pa.array(random.permutation(count)))
    pq.write_table(rows, path, compression="zstd")
    return count


def _changed(values: pa.ChunkedArray, random: np.random.Generator) -> pa.ChunkedArray:
    """Return other values of the same kind and spread: each row gets another row's, moved by one.

    Nulls stay as frequent as they were.
    """
    moved = values.take(pa.array(random.permutation(len(values))))
    one = pa.scalar(1).cast(pa.int64())
    if pa.types.is_decimal(moved.type):
        cent = pc.cast(pa.scalar("0.01"), moved.type)
        return pc.add(moved, cent).cast(moved.type)
    return pc.add(moved.cast(pa.int64()), one).cast(moved.type)


def copied(table: Path) -> Path:
    """Return a fresh copy of a table's folder, beside it; the copy before is deleted."""
    copy = table.with_name(f"copy-{table.name}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    return copy
