"""The contenders, each in a process and a Spark session of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.delta_session import delta_session
from benchmarks.service import offsets, seconds
from benchmarks.soak.fleet import DATABASE, SERVER
from lakesplice.apps.service import run
from lakesplice.config import Settings
from lakesplice.spark.jars import DELTA, SPARK_KAFKA, ensure_jars
from lakesplice.spark.kafka.query import MANY_CONSUMERS
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.history import history

Task = dict[str, Any]
# When so many changes were committed, seconds since the epoch.
Commit = tuple[float, int]
TOPICS = rf"{SERVER}\.{DATABASE}\.table_.*"
_THREADS = 2
_SETTINGS = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "true",
    # What a MERGE reads is in the driver. Tried: from a cached batch, which Delta copies once more,
    # and from a staging table partitioned by topic, a MERGE takes more of the processor.
    "spark.databricks.delta.merge.materializeSource": "none",
}
_IMAGE = "struct<id:bigint,status:string,amount:int,price:string,note:string>"
_EVENT = (
    f"struct<before:struct<id:bigint>,after:{_IMAGE},op:string,"
    "source:struct<file:string,pos:bigint,row:int>>"
)
_COLUMNS = ("id", "status", "amount", "price", "note")


def service(task: Task) -> list[Commit]:
    """Lakesplice's service until everything is read, with its own settings, compaction included."""
    lake = Path(task["work"]) / "lake"
    configured = Settings.model_validate(
        {
            "kafka": {
                "bootstrap_servers": task["servers"],
                "topic_pattern": TOPICS,
                "offsets_per_batch_max": task["size"],
            },
            "lake": {"root": str(lake)},
            "spark": {"master": "local[2]"},
            "metrics": {"enabled": False},
            "tables": [{"match": f"{DATABASE}.*", "columns": task["columns"]}],
        }
    )
    if run(configured, once=True):
        raise RuntimeError("the service failed; see its log above")
    return [
        commit for name in task["names"] for commit in _ingests(lake, name, task["starts"][name])
    ]


def _ingests(lake: Path, name: str, start: int) -> list[Commit]:
    """What was committed behind an offset."""
    found, before = list[Commit](), start
    for entry in sorted(history(LocalStore(lake / DATABASE / name)), key=lambda one: one.version):
        if entry.info.operation == "INGEST" and (end := sum(offsets(entry).values())) > before:
            found.append((seconds(entry), end - before))
            before = end
    return found


def merge_loop(task: Task) -> list[Commit]:
    """One query over all topics; a batch is parsed and folded once, then a MERGE for each table."""
    session, done = _session(task), list[Commit]()

    def each(frame: DataFrame, batch: int) -> None:
        rows = _newest(frame).toArrow()

        def merge_one(name: str) -> None:
            found = rows.filter(pc.equal(rows["topic"], _topic(name)))
            if found.num_rows and _is_due(task, name, batch):
                done.append(_merge(task, frame.sparkSession, found, name))

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(merge_one, task["names"]))

    _start(task, session, "loop", task["names"], task["size"], each).awaitTermination()
    session.stop()
    return done


def merge_queries(task: Task) -> list[Commit]:
    """A query for each table, all at once in one session."""
    session, done = _session(task), list[Commit]()

    def each(name: str, frame: DataFrame, batch: int) -> None:
        if _is_due(task, name, batch):
            done.append(_merge(task, frame.sparkSession, _newest(frame).toArrow(), name))

    queries = []
    for name in task["names"]:
        size = -(-task["counts"][name] // (task["batches"] + 1))
        queries.append(_start(task, session, name, [name], size, partial(each, name)))
    for query in queries:
        query.awaitTermination()
    session.stop()
    return done


def _is_due(task: Task, name: str, batch: int) -> bool:
    """Whether the table takes part: in each batch that is measured; behind these, some records of
    each table may be left, and only the tables that are compared get theirs.
    """
    return batch <= task["measured"] or name in task["compared"]


def _session(task: Task) -> SparkSession:
    vectors = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    jars = ",".join(map(str, [*ensure_jars(SPARK_KAFKA), *ensure_jars(DELTA)]))
    return delta_session(
        "local[2]", task["memory"], {**_SETTINGS, "spark.jars": jars, vectors: "false"}
    )


def _start(
    task: Task,
    session: SparkSession,
    query: str,
    names: list[str],
    size: int,
    each: Callable[[DataFrame, int], None],
) -> Any:
    starts = {_topic(name): {"0": task["starts"][name]} for name in names}
    options = {
        "kafka.bootstrap.servers": task["servers"],
        **MANY_CONSUMERS,
        "subscribePattern" if query == "loop" else "subscribe": (
            TOPICS if query == "loop" else _topic(query)
        ),
        "startingOffsets": json.dumps(starts),
        "maxOffsetsPerTrigger": str(size),
    }
    reader = session.readStream.format("kafka").options(**options).load()
    checkpoint = Path(task["work"]) / f"checkpoints-{task['contender']}" / query
    writer = reader.writeStream.foreachBatch(each).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _newest(frame: DataFrame) -> DataFrame:
    """Parse what MERGE needs, and keep each key's newest change by its position in the binlog, with
    the number of its changes.
    """
    parsed = frame.select("topic", f.from_json(f.col("value").cast("string"), _EVENT).alias("e"))
    key = f.coalesce("e.after.id", "e.before.id").alias("id")
    order = f.struct("e.source.file", "e.source.pos", "e.source.row")
    picked = parsed.groupBy("topic", key).agg(
        f.max_by("e", order).alias("e"), f.count(f.lit(1)).alias("count")
    )
    # Connect's decimals are big-endian two's complement; no price here is negative.
    price = (f.conv(f.hex(f.unbase64("e.after.price")), 16, 10).cast("bigint") / 100).cast(
        "decimal(12,2)"
    )
    plain = [f.col(f"e.after.{name}") for name in ("status", "amount", "note")]
    return picked.select("topic", "id", *plain, price.alias("price"), "e.op", "count")


def _merge(task: Task, session: SparkSession, rows: pa.Table, name: str) -> Commit:
    """Run a table's MERGE; returns when it was committed, and how many changes were in it."""
    session.createDataFrame(rows).createOrReplaceTempView(f"changes_{name}")
    target = Path(task["work"]) / task["contender"] / name
    assigned = ", ".join(f"t.{column} = s.{column}" for column in _COLUMNS[1:])
    columns, values = ", ".join(_COLUMNS), ", ".join(f"s.{column}" for column in _COLUMNS)
    session.sql(
        f"merge into delta.`{target}` t using changes_{name} s on t.id = s.id "
        f"when matched and s.op = 'd' then delete when matched then update set {assigned} "
        f"when not matched and s.op <> 'd' then insert ({columns}) values ({values})"
    ).collect()
    return time.time(), pc.sum(rows["count"]).as_py()


def _topic(name: str) -> str:
    return f"{SERVER}.{DATABASE}.{name}"


def main() -> None:
    """Run the contender that the first argument describes."""
    task: Task = json.loads(Path(sys.argv[1]).read_text())
    contenders: dict[str, Callable[[Task], list[Commit]]] = {
        "load": service, "lakesplice": service, "merge-loop": merge_loop,
        "merge-queries": merge_queries,
    }  # fmt: skip
    Path(task["out"]).write_text(json.dumps(sorted(contenders[task["contender"]](task))))


if __name__ == "__main__":
    main()
