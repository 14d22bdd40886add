"""One contender of the ingest benchmark, in a process and a Spark session of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import json as arrow_json
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.delta_session import DELTA_SETTINGS
from benchmarks.service import COLUMNS, ingests, offsets, seconds, settings
from lakesplice import Table
from lakesplice.apps.service import run
from lakesplice.spark.jars import DELTA, SPARK_KAFKA, ensure_jars
from lakesplice.spark.jvm import QUICK_START
from lakesplice.spark.kafka.query import MANY_CONSUMERS
from lakesplice.storage.local import LocalStore
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.files.page_rewriter import PageRewriter
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.compact import compact_files

Task = dict[str, Any]
_DELTA = {
    **DELTA_SETTINGS,
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.shuffle.partitions": "4",
}


def ours(task: Task) -> list[float]:
    """The service with --once, without compaction; commit times are those of the table's log."""
    lake = Path(task["work"]) / "lake"
    pattern = task["topic"].replace(".", "\\.")
    if run(settings(lake, task["servers"], pattern, task["size"]), once=True):
        raise RuntimeError("the service failed; see its log above")
    entries = [e for e in ingests(lake, task["table"]) if sum(offsets(e).values()) > task["start"]]
    return [seconds(entry) for entry in entries]


def compaction(task: Task) -> list[float]:
    """What one batch's changes cost to compact, without commit, on one core; then all are
    compacted.
    """
    lake = Path(task["work"]) / "lake"
    store = LocalStore(lake).within(f"shop/{task['table']}")
    first = next(
        e for e in ingests(lake, task["table"]) if sum(offsets(e).values()) > task["start"]
    )
    manifest = open_snapshot(store, first.version).manifest
    started = time.time()
    done = compact_files(store, manifest, list(manifest.files), PageRewriter(), SystemEntropy())
    ended = time.time()
    print(dict(done.counts))
    pattern = task["topic"].replace(".", "\\.")
    run(settings(lake, task["servers"], pattern, task["size"], deltas_max=1), once=True)
    return [started, ended]


def load(task: Task) -> list[float]:
    """Fill our table, as the service does."""
    return ours(task)


def seed(task: Task) -> list[float]:
    """Make the tables that MERGE will work on from the rows of ours, in four files each."""
    rows = Table.open(Path(task["work"]) / "lake" / "shop" / task["table"]).read()
    source = Path(task["work"]) / "rows.parquet"
    pq.write_table(rows, source, row_group_size=500_000)
    session = _session(task, delta=True)
    for name, vectors in (("merge", "false"), ("merge-vectors", "true")):
        target = str(Path(task["work"]) / name)
        writer = session.read.parquet(str(source)).repartition(4).write.format("delta")
        writer.option("delta.enableDeletionVectors", vectors).save(target)
    session.stop()
    return []


def floor(task: Task) -> list[float]:
    """Read by Spark, parsed by pyarrow's JSON reader, thrown away."""
    return _stream(task, _session(task, delta=False), parse_all)


def parse_all(frame: DataFrame, _batch: int) -> None:
    """Read the records of a batch and parse them by pyarrow's JSON reader, in two tasks."""
    counted = frame.select("value").coalesce(2).mapInArrow(_parse, "rows bigint").collect()
    assert sum(row.rows for row in counted) > 0


def _parse(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        joined = b"\n".join(batch.column("value").to_pylist())
        options = arrow_json.ReadOptions(use_threads=False, block_size=64 << 20)
        rows += arrow_json.read_json(pa.BufferReader(joined), options).num_rows
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def merge(task: Task) -> list[float]:
    """Delta's MERGE in foreachBatch, of the newest change of each key."""
    session = _session(task, delta=True)
    return _stream(task, session, _merging(task, session))


def follow(task: Task, out: Path) -> None:
    """MERGE at a 1-second trigger until SIGTERM; writes (seconds, next offset) of each commit."""
    session = _session(task, delta=True)
    each = _merging(task, session)
    done: list[tuple[float, int]] = []

    def timed(frame: DataFrame, _batch: int) -> None:
        last = frame.agg(f.max("offset")).collect()[0][0]
        each(frame, _batch)
        done.append((time.time(), last + 1))
        out.write_text(json.dumps(done))

    starts = {"0": task["start"]}
    writer = _reader(task, session, starts, 200_000).writeStream.foreachBatch(timed)
    checkpoint = str(Path(task["work"]) / "checkpoint-follow")
    query = (
        writer.trigger(processingTime="1 second").option("checkpointLocation", checkpoint).start()
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    query.awaitTermination()


def _merging(task: Task, session: SparkSession) -> Callable[[DataFrame, int], None]:
    target = str(Path(task["work"]) / task["contender"])
    names = session.read.format("delta").load(target).schema.names
    columns = ", ".join(f"t.{name} = s.{name}" for name in names if name != "id")

    def each(frame: DataFrame, _batch: int) -> None:
        newest = _newest(frame).persist()
        newest.createOrReplaceTempView("changes")
        newest.sparkSession.sql(
            f"merge into delta.`{target}` t using changes s on t.id = s.id "
            f"when matched and s.op = 'd' then delete when matched then update set {columns} "
            "when not matched and s.op <> 'd' then insert *"
        ).collect()
        newest.unpersist()

    return each


def _newest(frame: DataFrame) -> DataFrame:
    """Parse what MERGE needs and keep each key's newest change by binlog position."""
    image = ", ".join(f"{name}:{_ddl(kind)}" for name, kind in COLUMNS.items())
    place = "struct<file:string,pos:bigint,row:int>"
    schema = f"struct<after:struct<{image}>,op:string,source:{place}>"
    parsed = frame.select(f.from_json(f.col("value").cast("string"), schema).alias("e"))
    order = f.struct("e.source.file", "e.source.pos", "e.source.row")
    picked = parsed.groupBy("e.after.id").agg(f.max_by("e", order).alias("e"))
    columns = [_typed(name, kind) for name, kind in COLUMNS.items()]
    return picked.select(*columns, f.col("e.op").alias("op"))


def _ddl(kind: str) -> str:
    return {"long": "bigint", "integer": "int", "timestamp_micros": "bigint"}.get(kind, "string")


def _typed(name: str, kind: str) -> Any:
    column = f.col(f"e.after.{name}")
    if kind.startswith("decimal"):
        # Connect's decimals are big-endian two's complement, here of at most 7 bytes.
        number = f.conv(f.hex(f.unbase64(column)), 16, 10).cast("bigint")
        bits = f.length(f.unbase64(column)) * 8
        negative = number >= f.pow(f.lit(2), bits - 1).cast("bigint")
        signed = number - f.when(negative, f.pow(f.lit(2), bits).cast("bigint")).otherwise(0)
        return (signed / 100).cast("decimal(7,2)").alias(name)
    if kind == "timestamp_micros":
        return f.timestamp_micros(column).alias(name)
    return column.alias(name)


def _session(task: Task, *, delta: bool) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = [*ensure_jars(SPARK_KAFKA), *(ensure_jars(DELTA) if delta else [])]
    builder = SparkSession.Builder().master("local[2]").appName(task["contender"])
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # The floor has the options of the service's own JVM.
        **(_DELTA if delta else {"spark.driver.extraJavaOptions": QUICK_START}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _stream(
    task: Task, session: SparkSession, each: Callable[[DataFrame, int], None]
) -> list[float]:
    moments: list[float] = []

    def timed(frame: DataFrame, batch: int) -> None:
        each(frame, batch)
        moments.append(time.time())

    source = _reader(task, session, _starts(task), task["size"])
    checkpoint = Path(task["work"]) / "checkpoint"
    writer = source.writeStream.foreachBatch(timed).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    shutil.rmtree(checkpoint)
    session.stop()
    return moments


def _reader(task: Task, session: SparkSession, starts: dict[str, int], size: int) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": task["servers"],
        **MANY_CONSUMERS,
        "assign": json.dumps({task["topic"]: [int(number) for number in starts]}),
        "startingOffsets": json.dumps({task["topic"]: starts}),
        "maxOffsetsPerTrigger": str(size),
    }
    return session.readStream.format("kafka").options(**options).load()


def _starts(task: Task) -> dict[str, int]:
    """Each partition's offset at which the records of this measurement begin."""
    known = Path(task["work"]) / f"starts-{task['size']}.json"
    starts: dict[str, int] = json.loads(known.read_text())
    return starts


def main() -> None:
    """Run the contender that the first argument describes."""
    task: Task = json.loads(sys.argv[1])
    contenders: dict[str, Callable[[Task], list[float]]] = {
        "load": load, "seed": seed, "lakesplice": ours, "compaction": compaction, "floor": floor,
        "merge": merge, "merge-vectors": merge,
    }  # fmt: skip
    Path(task["out"]).write_text(json.dumps(contenders[task["contender"]](task)))


if __name__ == "__main__":
    main()
