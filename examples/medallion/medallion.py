"""Bronze, silver and gold, each kept up to date from the change feed of the one before.

    bronze   shop/orders: Lakesplice keeps it like the source's table (`change_feed: true`)
    silver   silver/orders: the orders that count, with cleaned columns
    gold     gold/customers: orders and revenue of each customer

Run: python examples/medallion/medallion.py LAKE

Call it as often as you like, also after a crash: each step is one commit, which also holds the
version up to which the step has read. So nothing is missed, and nothing counts twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

import lakesplice

SILVER = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("customer_id", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("total", pa.decimal128(12, 2)),
        pa.field("day", pa.date32()),
    ]
)
GOLD = pa.schema(
    [
        pa.field("customer_id", pa.int64()),
        pa.field("orders", pa.int64()),
        pa.field("revenue", pa.decimal128(18, 2)),
    ]
)
ADDS = ("insert", "update_postimage")  # the other images take a row away


def refresh(lake: Path) -> dict[str, int]:
    """Bring silver and gold up to date; return how many rows each step wrote or deleted."""
    bronze = lakesplice.Table.open(lake / "shop" / "orders")
    silver = opened(lake / "silver" / "orders", SILVER, "id")
    rows = {"silver": to_silver(bronze, lake / "shop" / "orders", silver)}
    gold = opened(lake / "gold" / "customers", GOLD, "customer_id")
    rows["gold"] = to_gold(silver, lake / "silver" / "orders", gold)
    return rows


def opened(path: Path, schema: pa.Schema, key: str) -> lakesplice.Table:
    """Open a table of ours, which is made the first time."""
    if not (path / "_delta_log").exists():
        lakesplice.Table.create(path, schema, key=[key], change_feed=True)
    return lakesplice.Table.open(path)


def to_silver(bronze: lakesplice.Table, path: Path, silver: lakesplice.Table) -> int:
    """Clean what changed in bronze: by key, the newest state of each row counts."""
    done = silver.transactions.get("bronze")
    if done is None:  # the first time: a snapshot, and then its feed
        changed = cleaned(pl.DataFrame(bronze.read("read_optimised")))
        gone = changed.clear()
    else:
        # Within a version deletes come first, as a row may leave one place for another.
        newest = (
            feed(path, done, bronze.version)
            .filter(pl.col("_change_type") != "update_preimage")
            .sort("_commit_version", pl.col("_change_type") != "delete", maintain_order=True)
            .unique("id", keep="last")
        )
        changed = cleaned(newest.filter(pl.col("_change_type") != "delete"))
        gone = newest.join(changed, on="id", how="anti")
    upserted = silver.upsert(
        changed.to_arrow().cast(SILVER),
        delete=gone.select("id").to_arrow(),
        transaction=("bronze", bronze.version),
        merge=True,  # so that silver's feed tells it at once
    )
    return upserted.inserted + upserted.updated + upserted.deleted


def cleaned(orders: pl.DataFrame) -> pl.DataFrame:
    """Return orders that count, by day, with a status in one spelling."""
    return orders.filter(pl.col("status") != "cancelled", pl.col("total") > 0).select(
        "id",
        "customer_id",
        pl.col("status").str.strip_chars().str.to_lowercase(),
        "total",
        pl.col("placed_at").dt.date().alias("day"),
    )


def to_gold(silver: lakesplice.Table, path: Path, gold: lakesplice.Table) -> int:
    """Add up what changed in silver: each image counts, with its sign."""
    done = gold.transactions.get("silver")
    images = feed(path, -1 if done is None else done, silver.version)
    sign = pl.when(pl.col("_change_type").is_in(ADDS)).then(1).otherwise(-1)
    change = images.group_by("customer_id").agg(
        orders=sign.sum().cast(pl.Int64), revenue=(pl.col("total") * sign).sum()
    )
    now = (
        pl.concat([pl.DataFrame(gold.read()), change], how="vertical_relaxed")
        .filter(pl.col("customer_id").is_in(change["customer_id"].to_list()))
        .group_by("customer_id")
        .agg(pl.col("orders").sum(), pl.col("revenue").sum())
    )
    kept, gone = now.filter(pl.col("orders") > 0), now.filter(pl.col("orders") == 0)
    upserted = gold.upsert(
        kept.to_arrow().cast(GOLD),
        delete=gone.select("customer_id").to_arrow(),
        transaction=("silver", silver.version),
        merge=True,
    )
    return upserted.inserted + upserted.updated + upserted.deleted


def feed(path: Path, done: int, until: int) -> pl.DataFrame:
    """Return what the versions after `done` changed, up to `until`; no rows if there are none."""
    reader = DeltaTable(path).load_cdf(min(done + 1, until), until)
    rows = pl.DataFrame(pa.table(reader.read_all()))
    return rows.filter(~pl.col("_is_deleted"), pl.col("_commit_version") > done)


if __name__ == "__main__":
    print(refresh(Path(sys.argv[1])))  # noqa: T201 - a script, whose output this is
