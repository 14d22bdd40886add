"""Commands beside a running service: the service executes them, and continues to read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakesplice import Table
from lakesplice.testing.compare import compare
from tests.support.command_line import CommandLine
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import Sender, make_topics

SECTIONS: dict[str, Any] = {
    "trigger": 0.2,
    "lease": 2,
    "compaction": {"deltas_max": 2, "age_max": 1, "poll_seconds": 0.1},
}


def test_a_running_service_does_what_commands_ask_of_its_tables(
    kafka_broker: str, topic_name: str, tmp_path: Path, lakesplice: CommandLine
) -> None:
    goods = Ledger(topic_name, "goods")
    make_topics(kafka_broker, {goods.topic: PARTITIONS})
    sender = Sender(kafka_broker)
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", **SECTIONS)
    with lake.running() as service:
        take_in(service, lake, ends_of(send(sender, goods.insert(0, 200))))
        version = lake.table(goods.topic).version
        root = lake.path(goods.topic).parents[1]
        assert "1 tables pinned as first" in lakesplice.out(
            "pin", root, "first", "--expires", "30d"
        )
        take_in(service, lake, ends_of(send(sender, goods.update(range(0, 200, 3), "later"))))
        records = send(sender, goods.delete(range(5)))
        assert "rebuilt" in lakesplice.out("index", "rebuild", lake.path(goods.topic))
        take_in(service, lake, ends_of(records))
        records = send(sender, goods.insert(200, 220))
        told = lakesplice.out("restore", lake.path(goods.topic), "--version", str(version))
        assert f"version {version} restored" in told
        take_in(service, lake, ends_of(records))
        lakesplice.out("vacuum", lake.path(goods.topic))
        assert "removed for good" in lakesplice.out("purge", lake.path(goods.topic))
        assert "merged" in lakesplice.out("merge", lake.path(goods.topic))
        assert "laid out in" in lakesplice.out("optimize", lake.path(goods.topic), "--by", "id")
        asked = [entry["command"] for entry in lake.said("request")]
        assert asked == ["pin", "index rebuild", "restore", "vacuum", "purge", "merge", "optimize"]
        assert len(lake.said("driver")) == 1
        service.until(
            lambda: not lake.table(goods.topic).snapshot.manifest.deltas, "all is spliced in"
        )
        service.terminate()
        service.ends_well()
    for view in ("real_time", "read_optimised"):
        assert compare(goods.truth, lake.table(goods.topic).read(view), ["id"]) is None
    pinned = Table.open(lake.path(goods.topic), pin="first")
    assert (pinned.version, pinned.read().num_rows) == (version, 200)


def test_a_running_service_reads_a_topic_again_as_it_is_reported_to(
    kafka_broker: str, topic_name: str, tmp_path: Path, lakesplice: CommandLine
) -> None:
    goods = Ledger(topic_name, "goods")
    make_topics(kafka_broker, {goods.topic: PARTITIONS})
    sender = Sender(kafka_broker)
    lake = Lake(tmp_path, kafka_broker, rf"{topic_name}\..*", **SECTIONS)
    path = lake.path(goods.topic)

    def reset(*arguments: str) -> str:
        return lakesplice.out("reset", path, "--why", "a probe", *arguments)

    with lake.running() as service:
        first = send(sender, goods.insert(0, 200))
        take_in(service, lake, ends_of(first))
        between = datetime.now(UTC).isoformat()
        later = send(sender, [*goods.update(range(0, 200, 3), "later"), *goods.delete(range(5))])
        take_in(service, lake, ends_of([*first, *later]))
        version = lake.table(goods.topic).version
        ends = lake.table(goods.topic).offsets
        assert f"partition 0 is moved from {ends[0]} to 0" in reset("--to", "earliest", "--dry-run")
        assert "nothing done" in reset("--offset", f"0:{ends[0] - 1}", "--dry-run")
        reset("--to", "earliest")
        take_in(service, lake, ends_of([*first, *later]))
        told = reset("--to", between)
        for (_, at), end in ends_of(first).items():
            assert f"partition {at} is moved from {ends[at]} to {end} " in told
        take_in(service, lake, ends_of([*first, *later]))
        assert compare(goods.truth, lake.table(goods.topic).read(), ["id"]) is None
        place = json.loads(later[0].value or b"")["payload"]["source"]
        last = json.loads(first[-1].value or b"")["payload"]["source"]
        for to in (f"binlog {place['file']}:{place['pos']}", f"gtid {last['gtid']}"):
            told = reset("--to", to, "--dry-run")
            for (_, at), end in ends_of(first).items():
                assert f"partition {at} is moved from {ends[at]} to {end} " in told
        assert f"{200} rows would be deleted" in reset("--anew", "--dry-run")
        made = reset("--anew")
        assert "rows left in version" in made
        take_in(service, lake, ends_of(send(sender, goods.insert(200, 220))))
        service.terminate()
        service.ends_well()
    table = lake.table(goods.topic)
    assert compare(goods.truth, table.read(), ["id"]) is None
    whys = [e.info for e in table.history() if e.info.parameters.get("why") == "a probe"]
    assert [info.operation for info in whys] == ["RESET", "REDIRECT", "REDIRECT"]
    assert table.read(version=version).num_rows == 195
