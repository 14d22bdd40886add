"""Commands beside a running service: the service executes them, and continues to read. Both stories
share its life; a service with more tables would restart larger queries for each command.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lakesplice import Table
from lakesplice.testing.compare import compare
from tests.support.ledgers import Ledger, send
from tests.support.running import Lake, ends_of
from tests.support.stories import Stage, Step, Told, Until, stories_of, story
from tests.support.topics import Sender

SECTIONS: dict[str, Any] = {
    "trigger": 0.2,
    "compaction": {"deltas_max": 2, "age_max": 1, "poll_seconds": 0.1},
}
COMMANDS = ["pin", "index rebuild", "restore", "vacuum", "purge", "merge", "optimize"]


@pytest.fixture(scope="module")
def told(
    kafka_broker: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Told:
    """The stories of this file, told in one life of a service of their own."""
    prefix = f"asked-{secrets.token_hex(4)}"
    folder = tmp_path_factory.mktemp("requests")
    lake = Lake(folder, kafka_broker, rf"{prefix}-.*\..*", **SECTIONS)
    sender, own = Sender(kafka_broker), [i for i in request.session.items if i.path == request.path]
    stage = Stage(lake, kafka_broker, prefix, sender, 0, request.getfixturevalue)
    return Told(stage, stories_of(own))


@story
def test_a_running_service_does_what_commands_ask_of_its_tables(stage: Stage) -> Iterator[Step]:
    lake, cli, goods = stage.lake, stage.cli, stage.ledger("asked")
    path, only = lake.path(goods.topic), ("--tables", "asked.ledger")
    yield stage.taken_in(send(stage.sender, goods.insert(0, 200)))
    drivers = len(lake.said("driver"))
    pinned = cli.out("pin", lake.root, "first", *only, "--expires", "30d")
    assert "1 tables pinned as first" in pinned
    version = Table.open(path, pin="first").version
    yield stage.taken_in(send(stage.sender, goods.update(range(0, 200, 3), "later")))
    records = send(stage.sender, goods.delete(range(5)))
    assert "rebuilt" in cli.out("index", "rebuild", path)
    yield stage.taken_in(records)
    records = send(stage.sender, goods.insert(200, 220))
    told = cli.out("restore", path, "--version", str(version))
    assert f"version {version} restored" in told
    yield stage.taken_in(records)
    cli.out("vacuum", path)
    assert "removed for good" in cli.out("purge", path)
    assert "merged" in cli.out("merge", path)
    assert "laid out in" in cli.out("optimize", path, "--by", "id")
    assert [one["command"] for one in lake.said("request") if is_of(one, goods)] == COMMANDS
    assert len(lake.said("driver")) == drivers, "the service runs on"
    yield Until(
        lambda: not lake.table(goods.topic).snapshot.manifest.deltas, "all is spliced into asked"
    )
    for view in ("real_time", "read_optimised"):
        assert compare(goods.truth, lake.table(goods.topic).read(view), ["id"]) is None
    before = Table.open(path, pin="first")
    assert (before.version, before.read().num_rows) == (version, 200)


def is_of(request: dict[str, str], table: Ledger) -> bool:
    """Whether the service was asked this about the table."""
    return request["table"] == "/".join(table.topic.split(".")[-2:])


@story
def test_a_running_service_reads_a_topic_again_as_it_is_reported_to(stage: Stage) -> Iterator[Step]:
    lake, sender, goods = stage.lake, stage.sender, stage.ledger("again")
    path = lake.path(goods.topic)

    def reset(*arguments: str) -> str:
        return stage.cli.out("reset", path, "--why", "a probe", *arguments)

    first = send(sender, goods.insert(0, 200))
    yield stage.taken_in(first)
    between = datetime.now(UTC).isoformat(timespec="milliseconds")
    later = send(sender, [*goods.update(range(0, 200, 3), "later"), *goods.delete(range(5))])
    yield stage.taken_in([*first, *later])
    version = lake.table(goods.topic).version
    ends = lake.table(goods.topic).offsets
    assert f"partition 0 is moved from {ends[0]} to 0" in reset("--to", "earliest", "--dry-run")
    assert "nothing done" in reset("--offset", f"0:{ends[0] - 1}", "--dry-run")
    reset("--to", "earliest")
    yield stage.taken_in([*first, *later])
    told = reset("--to", between)
    for (_, at), end in ends_of(first).items():
        assert f"partition {at} is moved from {ends[at]} to {end} " in told
    yield stage.taken_in([*first, *later])
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
    yield stage.taken_in(send(sender, goods.insert(200, 220)))
    table = lake.table(goods.topic)
    assert compare(goods.truth, table.read(), ["id"]) is None
    whys = [e.info for e in table.history() if e.info.parameters.get("why") == "a probe"]
    assert [info.operation for info in whys] == ["RESET", "REDIRECT", "REDIRECT"]
    assert table.read(version=version).num_rows == 195
