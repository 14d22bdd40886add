"""`lakesplice reset`: how a table's offsets are moved, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.apps.table_commands.command_table import CommandTable
from lakesplice.apps.table_commands.dispatch import command_table
from lakesplice.apps.table_commands.reset_target import EARLIEST, LATEST, ResetTarget
from lakesplice.apps.table_commands.resetting import Reset, reset
from lakesplice.apps.table_commands.work import RESET
from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import claim_generation
from lakesplice.table.driver.requests import CommandRequest
from lakesplice.table.ingest.reset import TopicStart
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.by_hand import created
from tests.support.command_line import CommandLine
from tests.support.made import GENERATION, MadeTable

WHY = ("--why", "a probe")
NOTHING = Reset(None, "", anew=False, skip=False, dry_run=False, why="a probe")


def by_partition(*offsets: int) -> dict[int, Offset]:
    return dict(enumerate(map(Offset, offsets)))


@pytest.fixture
def table(tmp_path: Path) -> MadeTable:
    made = MadeTable(tmp_path / "shop" / "orders", TableSchema())
    partitions = {0: PartitionState(Offset(100)), 1: PartitionState(Offset(50))}
    (source,) = made.manifest.sources.values()
    moved = replace(source, partitions=partitions)
    made._commit(Redirect(GENERATION, made.snapshot.version, moved))
    return made


def source_of(table: MadeTable) -> SourceState:
    (source,) = open_snapshot(table.store).manifest.sources.values()
    return source


def driven(table: MadeTable) -> CommandTable:
    """The table as a driver's request has it, whose broker has the topic from offset 10 on."""
    lake = LocalStore(Path(table.store.root).parents[1])
    generation = claim_generation(lake, FixedClock(), lambda _: True)
    assert generation is not None
    asked = CommandRequest(
        "00ff", RESET, "shop/orders", "ann@host", EpochMs(FixedClock().now_ms() + 60_000), {}
    )
    place = command_table(lake, asked, generation, FixedClock(), SeededEntropy(1))

    def starts(topics: Sequence[str], since_ms: int | None) -> Mapping[str, TopicStart]:
        first, ends = by_partition(10, 10, 0), by_partition(120, 90, 0)
        offsets = first if since_ms is None else by_partition(70, 90, 0)
        start = TopicStart("its new id", offsets, earliest=first, ends=ends)
        return dict.fromkeys(topics, start)

    return replace(place, starts=starts)


def test_a_table_goes_back_to_offsets_and_knows_what_it_reads_again(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    ended = lakesplice("reset", table.store.root, "--offset", "0:20", *WHY)
    assert (
        ended.out
        == "partition 0 is moved from 100 to 20 (up to 80 records are read again), in version 2\n"
    )
    first, other = source_of(table).partitions.values()
    assert (first.next_offset, first.met_until, first.lossy) == (20, 100, False)
    assert other.next_offset == 50
    newest = lakesplice.rows("history", table.store.root)[0]
    assert (newest["operation"], newest["why"]) == ("REDIRECT", "a probe")
    assert "@" in newest["by"]


def test_a_dry_run_only_says_what_would_be_done(lakesplice: CommandLine, table: MadeTable) -> None:
    ended = lakesplice("reset", table.store.root, "--offset", "1:20", "--dry-run", *WHY)
    way = "partition 1 is moved from 50 to 20 (up to 30 records are read again)"
    assert ended.out == f"{way}: nothing done yet\n"
    assert source_of(table).partitions[1].next_offset == 50


def test_records_are_left_out_only_if_that_is_meant(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    refused = lakesplice("reset", table.store.root, "--offset", "0:101", *WHY)
    assert (refused.code, "offsets_by_partition={0: 1}" in refused.err) == (2, True)
    done = lakesplice("reset", table.store.root, "--offset", "0:101", "--skip", *WHY)
    assert done.code == 0, done.err
    assert source_of(table).partitions[0].lossy


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--offset", "7:0"], "no such partition"),
        (["--offset", "0"], "partition:offset"),
        (["--to", EARLIEST], "no service runs"),
        (["--anew"], "no service runs"),
        (["--to", "tomorrow"], "say where to begin: earliest"),
        (["--to", "binlog no-number"], "FILE:POSITION"),
        (["--to", "gtid nothing"], "isn't a set of GTIDs"),
        (["--to", "gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:7-9"], "in between"),
        (["--to", LATEST], "no service runs"),
        ([], "one of --to, --offset and --anew"),
        (["--anew", "--to", EARLIEST], "one of --to, --offset and --anew"),
        (["--anew", "--topic", "shop.orders"], "leave --topic out"),
        (["--offset", "0:1", "--topic", "shop.others"], "no such topic"),
    ],
)
def test_a_contradictory_reset_is_refused_and_nothing_changes(
    lakesplice: CommandLine, table: MadeTable, arguments: list[str], says: str
) -> None:
    before = open_snapshot(table.store).version
    ended = lakesplice("reset", table.store.root, *arguments, *WHY)
    assert (ended.code, open_snapshot(table.store).version) == (2, before)
    assert says in " ".join(ended.err.split())


def test_a_parked_table_is_not_moved_but_may_be_reloaded(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    parked = ParkReason(ParkCode.NO_KEY, "no key", "shop.orders")
    table._commit(Redirect(GENERATION, open_snapshot(table.store).version, parked=parked))
    refused = lakesplice("reset", table.store.root, "--offset", "0:20", *WHY)
    assert (refused.code, "unpark --from-offset" in refused.err) == (1, True)
    said = reset(driven(table), replace(NOTHING, anew=True)).text
    assert said.startswith("0 rows left in version 3")
    assert said.endswith("of shop.orders the broker has lost the beginning")
    manifest = open_snapshot(table.store).manifest
    assert manifest.parked is None
    source = source_of(table)
    assert (source.topic_id, source.partitions[0]) == ("its new id", PartitionState(Offset(10)))


def test_a_driver_knows_where_a_topic_begins_and_what_came_since(table: MadeTable) -> None:
    place = driven(table)
    said = reset(
        place, replace(NOTHING, to=ResetTarget(moment_ms=EpochMs(1_700_000_000_000)), skip=True)
    ).text
    assert said.startswith(
        "partition 0 is moved from 100 to 70 (up to 30 records are read again);"
        " partition 1 is moved from 50 to 90 (up to 40 records are never read), in"
    )
    reset(place, replace(NOTHING, to=ResetTarget(EARLIEST)))
    offsets = {at: state.next_offset for at, state in source_of(table).partitions.items()}
    assert offsets == {0: 10, 1: 10}


def test_the_newest_records_are_read_on_if_the_others_may_be_skipped(table: MadeTable) -> None:
    place, latest = driven(table), ResetTarget(LATEST)
    with pytest.raises(UsageError, match="give --skip"):
        reset(place, replace(NOTHING, to=latest))
    done = reset(place, replace(NOTHING, to=latest, skip=True, dry_run=True))
    assert done.facts["partitions"] == [
        {"partition": 0, "from": 100, "to": 120, "read_again": 0, "skipped": 20},
        {"partition": 1, "from": 50, "to": 90, "read_again": 0, "skipped": 40},
    ]
    assert source_of(table).gaps == ()
    reset(place, replace(NOTHING, to=latest, skip=True))
    assert [gap.text for gap in source_of(table).gaps] == ["0:100-120", "1:50-90"]


@pytest.mark.parametrize("offset", [9, 121])
def test_offsets_that_the_broker_has_not_got_are_refused(table: MadeTable, offset: int) -> None:
    there = ResetTarget(offsets={0: Offset(offset)})
    with pytest.raises(UsageError, match=f"offset={offset} first=10 end=120"):
        reset(driven(table), replace(NOTHING, to=there, skip=True))
    assert source_of(table).partitions[0].next_offset == 100


def test_several_tables_are_named_by_a_pattern_and_one_that_refuses_holds_up_no_other(
    lakesplice: CommandLine, table: MadeTable, tmp_path: Path
) -> None:
    created(LocalStore(tmp_path / "shop" / "by_hand"), [{"id": 1, "name": "a", "n": 0}])
    MadeTable(tmp_path / "other" / "orders", TableSchema())
    ended = lakesplice("reset", f"{tmp_path}/sh*/*", "--to", "0:20", *WHY)
    assert (ended.code, ended.out.split(" (")[0]) == (
        1,
        "shop.orders: partition 0 is moved from 100 to 20",
    )
    assert "shop.by_hand: the table is fed by hand" in ended.err
    assert source_of(table).partitions[0].next_offset == 20
    assert lakesplice("reset", f"{tmp_path}/n*/*", "--to", "0:20", *WHY).code == 1


def test_a_table_fed_by_hand_has_nothing_to_read_again(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / "shop" / "prices")
    created(store, [{"id": 1, "name": "a", "n": 0, "price": None}])
    ended = lakesplice("reset", store.root, "--anew", *WHY)
    assert (ended.code, "fed by hand" in ended.err) == (2, True)
