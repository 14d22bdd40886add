"""What edits of a table fed by hand cost, beside Delta Lake's DELETE, UPDATE and MERGE.

Run: python -m benchmarks.edits [--rows 1000000] [--repeats 3]

Both have the same rows of store_sales (TPC-DS), Lakesplice in a table fed by hand, Delta in a table
of its own in a Spark session of all cores that has warmed up. In each turn each side makes the same
edit of a copy of its table; ours with `merge=True`, so that afterwards every reader sees it, as
with Delta's. Afterwards both tables have the same number of rows. Seconds of the processor are
counted, too, those of the JVM from /proc: where other work runs on the machine they say more than
the clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import KEY, copied, store_sales
from benchmarks.verify import processor_seconds
from lakesplice import Table

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "edits.json"
ON = " AND ".join(f"t.{name} = s.{name}" for name in KEY)
_WHERE = ("lake", "s", "sales")


@dataclass(frozen=True)
class Edit:
    """The same edit for both; `aim` is how many times faster ours is to be."""

    name: str
    aim: float
    ours: Callable[[Table, dict[str, pa.Table]], object]
    delta: str


EDITS = (
    Edit(
        "delete by a predicate, 0.1 %",
        10,
        lambda table, _: table.delete("ss_ticket_number BETWEEN 1000 AND 1060", merge=True),
        "DELETE FROM {t} WHERE ss_ticket_number BETWEEN 1000 AND 1060",
    ),
    Edit(
        "delete 100 keys",
        10,
        lambda table, given: table.upsert(delete=given["few"], merge=True),
        "MERGE INTO {t} t USING few s ON {on} WHEN MATCHED THEN DELETE",
    ),
    Edit(
        "update by a predicate, anywhere",
        10,
        lambda table, _: table.update(
            {"ss_quantity": "ss_quantity + 1"}, "ss_item_sk = 17", merge=True
        ),
        "UPDATE {t} SET ss_quantity = ss_quantity + 1 WHERE ss_item_sk = 17",
    ),
    Edit(
        "merge, 5 % matched, three columns",
        6,
        lambda table, given: (
            table.merge(given["changes"]).when_matched_update().execute(merge=True)
        ),
        "MERGE INTO {t} t USING changes s ON {on} WHEN MATCHED THEN UPDATE SET"
        " t.ss_quantity = s.ss_quantity, t.ss_list_price = s.ss_list_price,"
        " t.ss_net_paid = s.ss_net_paid",
    ),
    Edit(
        "merge, all clauses",
        3,
        lambda table, given: (
            table.merge(given["mixed"])
            .when_matched_delete("source.ss_quantity < 10")
            .when_matched_update({"ss_quantity": "target.ss_quantity + source.ss_quantity"})
            .when_not_matched_insert()
            .when_not_matched_by_source_update({"ss_coupon_amt": "NULL"}, "ss_item_sk < 20")
            .execute(merge=True)
        ),
        "MERGE INTO {t} t USING mixed s ON {on}"
        " WHEN MATCHED AND s.ss_quantity < 10 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET t.ss_quantity = t.ss_quantity + s.ss_quantity"
        " WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND t.ss_item_sk < 20 THEN UPDATE SET t.ss_coupon_amt = NULL",
    ),
)


class Ours:
    """A table fed by hand."""

    def __init__(self, folder: Path, rows: Path, given: dict[str, pa.Table]) -> None:
        self._folder, self._given = folder, given
        Table.create((folder / "ours").joinpath(*_WHERE), pq.read_table(rows), key=KEY)

    def run(self, edit: Edit) -> tuple[float, float, int]:
        """Edit a copy; return the seconds, those of the processor, and the rows left."""
        copy = copied(self._folder / "ours")
        table = Table.open(copy.joinpath(*_WHERE))
        clock, processor = time.monotonic(), time.process_time()
        edit.ours(table, self._given)
        took = time.monotonic() - clock, time.process_time() - processor
        return *took, table.read("read_optimised", columns=[]).num_rows


class Delta:
    """Delta's own table of the same rows."""

    def __init__(
        self, spark: SparkSession, folder: Path, rows: Path, given: dict[str, pa.Table]
    ) -> None:
        self._spark, self._folder = spark, folder
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        self._jvm = gateway.proc.pid
        spark.read.parquet(str(rows)).write.format("delta").save(str(folder / "delta"))
        for name, table in given.items():
            pq.write_table(table, folder / f"{name}.parquet")
            spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)

    def run(self, edit: Edit) -> tuple[float, float, int]:
        """As `Ours.run`."""
        copy = copied(self._folder / "delta")
        clock, processor = time.monotonic(), processor_seconds(self._jvm)
        self._spark.sql(edit.delta.format(t=f"delta.`{copy}`", on=ON)).collect()
        took = time.monotonic() - clock, processor_seconds(self._jvm) - processor
        return *took, self._spark.read.format("delta").load(str(copy)).count()


def sources(rows: pa.Table) -> dict[str, pa.Table]:
    """The sources of the merges: 100 keys, 5 % of the rows changed, and these with new rows."""
    few = rows.take(pa.array(range(0, rows.num_rows, rows.num_rows // 100))).select(list(KEY))
    some = rows.take(pa.array(range(7, rows.num_rows, 20)))
    columns = [*KEY, "ss_quantity", "ss_list_price", "ss_net_paid"]
    changes = some.select(columns)
    for name in columns[len(KEY) :]:
        at = changes.column_names.index(name)
        kind = changes.schema.field(name).type
        changes = changes.set_column(at, name, pc.add(changes[name], 1).cast(kind))
    new = some.slice(0, some.num_rows // 5)
    ticket = KEY[-1]
    moved = pc.add(new[ticket], 100_000_000).cast(new.schema.field(ticket).type)
    new = new.set_column(new.column_names.index(ticket), ticket, moved)
    return {"few": few, "changes": changes, "mixed": pa.concat_tables([some, new])}


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    spark = delta_session()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows = folder / "rows.parquet"
        table = store_sales(folder, args.rows)
        pq.write_table(table, rows)
        given = sources(table)
        sides = {
            "lakesplice": Ours(folder, rows, given),
            "delta": Delta(spark, folder, rows, given),
        }
        found = [_measured(edit, sides, args.repeats) for edit in EDITS]
    spark.stop()
    args.out.write_text(json.dumps({"rows": args.rows, "edits": found}, indent=1) + "\n")


def _measured(edit: Edit, sides: dict[str, Any], repeats: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    processor: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        left = {}
        for name in [*sides][:: 1 if turn % 2 else -1]:
            clock, used, left[name] = sides[name].run(edit)
            if turn:  # the first one warms up
                seconds[name].append(clock)
                processor[name].append(used)
        if len(set(left.values())) > 1:
            raise RuntimeError(f"{edit.name}: the tables differ: {left}")
    ratios = {
        what: statistics.median(found["delta"]) / statistics.median(found["lakesplice"])
        for what, found in (("clock", seconds), ("processor", processor))
    }
    medians = {name: round(statistics.median(found), 2) for name, found in seconds.items()}
    print(f"{edit.name}: {medians}, {ratios}, aim {edit.aim}", flush=True)
    return {
        "edit": edit.name,
        "aim": edit.aim,
        "seconds": seconds,
        "processor_seconds": processor,
        "ratios": ratios,
    }


if __name__ == "__main__":
    main()
