"""The service with its lake in a bucket: a real broker feeds it, it is killed, continues, and keeps
few files per table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakesplice.testing.compare import compare
from lakesplice.testing.s3_proxy import ProxiedRequest, S3Proxy
from lakesplice.testing.s3_server import S3Server, options
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import Sender, make_topics

# Every delta is compacted as soon as it is there; whatever else keeps a table tidy is busy, too.
EAGER: dict[str, Any] = {
    # The next service waits for that of a killed one.
    "lease": 3,
    "compaction": {"deltas_max": 1, "poll_seconds": 0.1},
    "index": {"runs_max": 2},
    "merge": {"files_max": 3},
    "log": {"checkpoint_every": 3, "retention": 15, "readers_may_fail": True},
    "vacuum": {"every": 1},
    # The ledgers' clock stands months ago, so every delete of theirs is old.
    "purge": {"after": 3_600, "every": 1, "ratio_min": 0},
}


def listing(request: ProxiedRequest) -> bool:
    return request.is_list


def test_a_lake_in_a_bucket_holds_what_the_topics_say_in_few_files_without_what_left_long_ago(
    kafka_broker: str, s3_server: S3Server, tmp_path: Path
) -> None:
    goods, others = (Ledger("bucket", name) for name in ("goods", "others"))
    make_topics(kafka_broker, {table.topic: PARTITIONS for table in (goods, others)})
    sender = Sender(kafka_broker)
    with S3Proxy(s3_server.port) as proxy:
        root = f"s3://{s3_server.make_bucket()}/lake"
        place = {"root": root, "options": options(proxy.endpoint)}
        lake = Lake(tmp_path, kafka_broker, r"bucket\..*", lake=place, **EAGER)
        with lake.running(own_jvm=True) as service:
            records = send(sender, goods.insert(0, 500) + others.insert(0, 50))
            take_in(service, lake, ends_of(records))
            records = send(sender, goods.update(range(0, 500, 7), "changed"))
            take_in(service, lake, ends_of(records))
            proxy.reset()
            records = send(sender, goods.delete(range(20, 30)) + goods.insert(500, 520))
            take_in(service, lake, ends_of(records))
            # The test looks at tables too: by their names, from their newest checkpoint on.
            assert not [request for request in proxy.seen(listing) if "base" in request.path]
            service.kill()
        with lake.running() as service:
            records = send(sender, goods.update([1, 2, 3], "again"))
            take_in(service, lake, ends_of(records))
            for first in range(1_000, 1_100, 20):
                take_in(service, lake, ends_of(send(sender, goods.insert(first, first + 20))))
            service.until(lambda: nothing_waits(lake, goods), "all is compacted")
            service.until(lambda: is_merged(lake, goods), "files and runs are merged")
            service.until(lambda: lake.said("vacuumed") != [], "a vacuum")
            service.until(lambda: stored(lake, goods) == goods.truth.num_rows, "a purge")
            service.terminate()
            service.ends_well()
        for table in (goods, others):
            for view in ("real_time", "read_optimised"):
                found = lake.table(table.topic).read(view)
                assert compare(table.truth, found, ["id"]) is None
        assert lake.said("purged") != []
        assert lake.table(goods.topic).snapshot.manifest.retention.retained_from > 0


def nothing_waits(lake: Lake, table: Ledger) -> bool:
    return not lake.table(table.topic).snapshot.manifest.deltas


def stored(lake: Lake, table: Ledger) -> int:
    """How many rows the files have, deleted ones too."""
    return sum(file.rows for file in lake.table(table.topic).snapshot.manifest.files.values())


def is_merged(lake: Lake, table: Ledger) -> bool:
    """Whether a file holds what several batches brought, and the index has few runs."""
    manifest = lake.table(table.topic).snapshot.manifest
    return len(manifest.runs) <= 2 and any(len(f.segments) > 1 for f in manifest.files.values())
