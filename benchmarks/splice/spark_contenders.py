"""Contenders that are Spark's MERGE: Delta Lake, Iceberg and Hudi, in their ways of writing.

Imports only PySpark and the standard library: Hudi runs in an environment of its own. All are tuned
for two cores, since their defaults for shuffles and listings are five times slower there.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.delta_session import DELTA_SETTINGS
from benchmarks.splice.measuring import Contender, Phases, Task, serve_parent

KEY = ("ss_item_sk", "ss_ticket_number")
_COMMON = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
_DELTA = {
    **DELTA_SETTINGS,
    "spark.databricks.delta.snapshotPartitions": "2",
}
_HUDI = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


def _session(task: Task, settings: Mapping[str, str]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    work = Path(task["work"])
    builder = SparkSession.Builder().master("local[2]").appName(task["contender"])
    everything = {
        **_COMMON,
        "spark.jars": ",".join(task["jars"]),
        "spark.driver.memory": task["memory"],
        "spark.sql.warehouse.dir": str(work / f"{task['contender']}-warehouse"),
        **settings,
    }
    for name, value in everything.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class _Merging:
    """MERGE INTO of the changes; `self.target` is the table's name in SQL."""

    target = ""

    def __init__(self, task: Task, settings: Mapping[str, str]) -> None:
        self.task = task
        self.parts: list[str] = task["parts"]
        self.spark = _session(task, settings)

    def bring_in(self, changes: Path, columns: list[str]) -> Phases:
        """See `Contender.bring_in`."""
        self.spark.read.parquet(str(changes)).createOrReplaceTempView("changes")
        on = " and ".join(f"t.{name} = s.{name}" for name in KEY)
        update = ", ".join(f"t.{name} = s.{name}" for name in columns)
        self.spark.sql(
            f"merge into {self.target} t using changes s on {on} "
            f"when matched then update set {update}"
        ).collect()
        return {}

    def seen(self, columns: list[str]) -> dict[str, str]:
        """See `Contender.seen`."""
        picked = ", ".join(f"sum({name}) as {name}" for name in columns)
        row = self.spark.sql(f"select {picked} from {self.target}").collect()[0]
        return {name: str(row[name]) for name in columns}


class DeltaMerge(_Merging):
    """Delta Lake, copy-on-write or with deletion vectors."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, _DELTA)
        self.vectors = task["contender"] == "delta-vectors"
        self.pristine = Path(task["work"]) / f"{task['contender']}-pristine"
        self.table = Path(task["work"]) / task["contender"]
        self.target = f"delta.`{self.table}`"

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        for part in self.parts:
            rows = self.spark.read.parquet(part).coalesce(1)
            writer = rows.write.format("delta").mode("append")
            writer = writer.option("delta.enableDeletionVectors", str(self.vectors).lower())
            writer.save(str(self.pristine))

    def reset(self) -> None:
        """See `Contender.reset`."""
        shutil.rmtree(self.table, ignore_errors=True)
        shutil.copytree(self.pristine, self.table)
        # The log of the folder's last life is in a cache by its path.
        jvm = self.spark._jvm
        assert jvm is not None
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


class IcebergMerge(_Merging):
    """Iceberg, copy-on-write or merge-on-read of format version 3, which has deletion vectors."""

    def __init__(self, task: Task) -> None:
        catalog = "spark.sql.catalog.ice"
        super().__init__(
            task,
            {
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions"
                ".IcebergSparkSessionExtensions",
                catalog: "org.apache.iceberg.spark.SparkCatalog",
                f"{catalog}.type": "hadoop",
                f"{catalog}.warehouse": str(Path(task["work"]) / task["contender"]),
            },
        )
        self.mode = "merge-on-read" if task["contender"] == "iceberg-mor" else "copy-on-write"
        self.version = "3" if self.mode == "merge-on-read" else "2"
        self.target = "ice.db.store_sales"
        self.snapshot = 0

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        for at, part in enumerate(self.parts):
            rows = self.spark.read.parquet(part).coalesce(1).writeTo(self.target)
            if at:
                rows.append()
                continue
            rows = rows.tableProperty("format-version", self.version)
            rows.tableProperty("write.merge.mode", self.mode).create()
        history = self.spark.sql(f"select * from {self.target}.history order by made_current_at")
        self.snapshot = history.collect()[-1]["snapshot_id"]

    def reset(self) -> None:
        """See `Contender.reset`; the files of later snapshots stay, unread."""
        call = f"call ice.system.set_current_snapshot('db.store_sales', {self.snapshot})"
        self.spark.sql(call).collect()


class HudiMerge(_Merging):
    """Hudi, copy-on-write, with its default index."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, _HUDI)
        self.pristine = Path(task["work"]) / f"{task['contender']}-pristine"
        self.table = Path(task["work"]) / task["contender"]
        self.target = "store_sales"

    def prepare(self) -> None:
        """See `Contender.prepare`."""
        for part in self.parts:
            rows = self.spark.read.parquet(part).coalesce(1)
            writer = rows.write.format("hudi").mode("append").options(
                **{
                    "hoodie.table.name": self.target,
                    "hoodie.datasource.write.recordkey.field": ",".join(KEY),
                    "hoodie.datasource.write.operation": "bulk_insert",
                    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
                    "hoodie.bulkinsert.shuffle.parallelism": "1",
                }
            )  # fmt: skip
            writer.save(str(self.pristine))
        shutil.copytree(self.pristine, self.table)
        self.spark.sql(f"create table {self.target} using hudi location '{self.table}'")

    def reset(self) -> None:
        """See `Contender.reset`."""
        shutil.rmtree(self.table, ignore_errors=True)
        shutil.copytree(self.pristine, self.table)
        self.spark.sql(f"refresh table {self.target}")


CONTENDERS: dict[str, Callable[[Task], Contender]] = {
    "delta": DeltaMerge,
    "delta-vectors": DeltaMerge,
    "iceberg-cow": IcebergMerge,
    "iceberg-mor": IcebergMerge,
    "hudi": HudiMerge,
}


def _contender(task: Task) -> Contender:
    return CONTENDERS[task["contender"]](task)


if __name__ == "__main__":
    serve_parent(_contender)
