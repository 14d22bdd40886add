"""A running service keeps few files per table, deletes old ones, and the rows are correct."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from lakesplice.model.address import BaseFile
from lakesplice.planning.upkeep.retention import files_by_path
from lakesplice.testing.compare import compare
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, ends_of, take_in
from tests.support.topics import Sender, make_topics

ROUNDS = 12
SECTIONS: dict[str, Any] = {
    "compaction": {"deltas_max": 2, "age_max": 1, "poll_seconds": 0.1},
    "merge": {"files_max": 3},
    "log": {"checkpoint_every": 3, "retention": 15, "readers_may_fail": True},
    "vacuum": {"every": 1},
}


def files(lake: Lake, ledger: Ledger) -> list[BaseFile]:
    return [*lake.table(ledger.topic).snapshot.manifest.files.values()]


def test_small_files_are_merged_and_what_no_version_needs_is_deleted(
    kafka_broker: str, tmp_path: Path
) -> None:
    server = f"upkeep-{secrets.token_hex(4)}"
    ledger = Ledger(server, "goods")
    make_topics(kafka_broker, {ledger.topic: PARTITIONS})
    lake = Lake(tmp_path, kafka_broker, rf"{server}\..*", **SECTIONS)
    sender = Sender(kafka_broker)
    with lake.running() as service:
        for number in range(ROUNDS):
            first = number * 10
            records = send(
                sender, ledger.insert(first, first + 10) + ledger.update(range(5), str(number))
            )
            take_in(service, lake, ends_of(records))
        service.until(lambda: len(files(lake, ledger)) < SECTIONS["merge"]["files_max"], "a merge")
        service.until(lambda: lake.said("vacuumed") != [], "a vacuum")
        service.terminate()
        service.ends_well()
    table = lake.table(ledger.topic)
    assert any(len(file.segments) > 1 for file in files(lake, ledger))
    assert compare(ledger.truth, table.read(), ["id"]) is None
    assert table.snapshot.manifest.retention.retained_from > 0
    folder = lake.path(ledger.topic)
    assert all((folder / path).exists() for path in files_by_path(table.snapshot.manifest))


def test_rows_deleted_long_ago_leave_for_good(kafka_broker: str, tmp_path: Path) -> None:
    server = f"purge-{secrets.token_hex(4)}"
    ledger = Ledger(server, "goods")
    make_topics(kafka_broker, {ledger.topic: PARTITIONS})
    # The ledger's clock stands months ago, so every delete of its is old.
    purge = {"after": 3_600, "every": 1, "ratio_min": 0}
    sections = {**SECTIONS, "purge": purge}
    lake = Lake(tmp_path, kafka_broker, rf"{server}\..*", **sections)
    sender = Sender(kafka_broker)
    with lake.running() as service:
        take_in(service, lake, ends_of(send(sender, ledger.insert(0, 40))))
        take_in(service, lake, ends_of(send(sender, ledger.delete(range(20)))))
        take_in(service, lake, ends_of(send(sender, ledger.insert(40, 60))))
        service.until(lambda: stored(lake, ledger) == 40, "a purge")
        service.terminate()
        service.ends_well()
    table = lake.table(ledger.topic)
    assert lake.said("purged") != []
    assert compare(ledger.truth, table.read(), ["id"]) is None


def stored(lake: Lake, ledger: Ledger) -> int:
    return sum(file.rows for file in files(lake, ledger))
