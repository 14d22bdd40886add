"""What the work of filling one table decides, and the upkeep of a shadow, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from lakesplice.apps.bootstrap.database_fill import DatabaseFill
from lakesplice.apps.bootstrap.fill_request import FillRequest
from lakesplice.apps.bootstrap.fill_tools import Database, FillTools
from lakesplice.apps.bootstrap.shadow_upkeep import ShadowUpkeep
from lakesplice.apps.bootstrap.source_chunks import LoadBounds
from lakesplice.apps.bootstrap.table_work import TableWork
from lakesplice.apps.bootstrap.topic_fill import TopicFill
from lakesplice.apps.table_commands.dispatch import RequestWait
from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.model.position import Position, below_snapshot
from lakesplice.model.progress.shadow_plan import FilledFrom
from lakesplice.planning.rows.index_merge import RUNS_MAX
from lakesplice.planning.source_rows.columns import DatabaseColumn
from lakesplice.spark.kafka.topics import Topic
from lakesplice.storage.local import LocalStore
from lakesplice.storage.source.binlog_places import BinlogPlace, SnapshotPlace
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import TableChanged
from lakesplice.storage.source.tables import SourceTable
from lakesplice.table.ingest.shadow import (
    SHADOW_PARAMETER,
    first_source,
    swap_intent,
)
from lakesplice.table.protocol.commit import create
from lakesplice.table.protocol.ports import UNWATCHED
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.service_settings import settings_of
from tests.support.shadows import SHADOW, Filling, ReadSource, newest_snapshot
from tests.support.simulated import driver_of, rows_of

NAME = TableName("shop", "goods")
FROM_SNAPSHOT: Any = {"filled_from": FilledFrom.SNAPSHOT, "verify": True}
STORED = SourceTable(
    "shop",
    "goods",
    (
        DatabaseColumn("id", "bigint(20)", optional=False),
        DatabaseColumn("name", "varchar(20)", "utf8mb4", "utf8mb4_general_ci"),
        DatabaseColumn("n", "int(11)"),
    ),
    ("id",),
    "made",
    rows_about=5,
)


@dataclass
class Server:
    """A database server with one table of keys 1 to 5; answers as `SourceConnection`."""

    is_altered: bool = False

    @property
    def place(self) -> SnapshotPlace:
        return SnapshotPlace(BinlogPlace("bin.000002", 70), BinlogPlace("bin.000002", 90))

    def table(self, *_: str) -> SourceTable:
        return STORED

    def identity(self) -> str:
        return "server-1"

    def in_snapshot(self, table: SourceTable, work: Callable[[Any], Any]) -> Any:
        return TableChanged(table.name) if self.is_altered else work(self)

    def bound(self, _: object, after: tuple[str, ...] | None, count: int) -> tuple[str] | None:
        at = int(after[0] if after else 0) + count
        return (str(at),) if at <= 5 else None


class Tools(FillTools):
    """Tools of a lake in a folder, and of a topic and a database that answer from memory."""

    def __init__(self, lake: LocalStore, source: ReadSource, **sections: Any) -> None:
        self.source, self.server = source, Server()
        address = DatabaseAddress.parse("mysql://u@h/shop")
        super().__init__(
            settings=settings_of(lake.root, **sections),
            lake=lake,
            catalogue=cast(Any, self),
            reader=cast(Any, self),
            shadow_feed=cast(Any, SimpleNamespace(schemas=None)),
            types=None,
            database=Database(address, LoadBounds(chunk_rows=2)),
            clock=FixedClock(),
            entropy=SeededEntropy(1),
            progress=UNWATCHED,
            patience=RequestWait(),
        )

    @property
    def topic(self) -> Topic:
        topic = self.source.topic
        return Topic(topic.name, topic.topic_id, topic.starts, topic.ends)

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        return dict.fromkeys(names, self.topic)

    def read(self, _: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
        for at, (start, end) in ranges.items():
            events = self.source.topic.events(at, start)[: end - start]
            yield (
                at,
                pa.RecordBatch.from_pydict(
                    {
                        "offset": pa.array(range(start, start + len(events)), pa.int64()),
                        "timestamp": pa.array([0] * len(events), pa.int64()),
                        "key": pa.array([event.key for event in events], pa.binary()),
                        "value": pa.array([event.value for event in events], pa.binary()),
                    }
                ),
            )

    def connect(self) -> Any:
        return nullcontext(self.server)

    def work(self, **request: Any) -> TableWork:
        asked = FillRequest(**{"filled_from": FilledFrom.TOPIC, **request})
        return TableWork(self, asked, NAME, self.topic)


class Meanwhile(FixedClock):
    """A clock on which something happens during the first wait."""

    def __init__(self, happen: Callable[[], object]) -> None:
        super().__init__()
        self._happenings = [happen]

    def wait(self, seconds: float) -> None:
        super().wait(seconds)
        while self._happenings:
            self._happenings.pop()()


@pytest.fixture
def source() -> ReadSource:
    """A source whose topic has a record of one row."""
    source = ReadSource()
    source.topic.append(0, source.put(1))
    return source


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def test_a_plan_has_the_chunks_and_where_topic_and_binlog_stood_before_the_first(
    lake: LocalStore, source: ReadSource
) -> None:
    tools = Tools(lake, source)
    plan = DatabaseFill(tools, FillRequest(), NAME, NAME, tools.topic).plan()
    assert (plan.server, plan.bounds, plan.rows) == ("server-1", (("2",), ("4",)), 5)
    assert plan.ends == {0: Offset(1), 1: Offset(0)}
    assert Position.of(0, 2, 70, 0, 0) <= plan.start < Position.of(0, 2, 71, 0, 0)


def test_a_table_that_is_altered_while_it_is_planned_is_refused(
    lake: LocalStore, source: ReadSource
) -> None:
    tools = Tools(lake, source)
    tools.server.is_altered = True
    with pytest.raises(UsageError, match="altered just now; run the command again"):
        DatabaseFill(tools, FillRequest(), NAME, NAME, tools.topic).plan()


def test_a_dry_run_plans_and_begins_nothing(lake: LocalStore, source: ReadSource) -> None:
    tools = Tools(lake, source)
    outcome = tools.work(dry_run=True, filled_from=FilledFrom.DATABASE).done()
    assert (outcome.state, outcome.chunks, outcome.rows) == ("planned", 3, 5)
    assert open_shadows(lake.within(NAME.path)) == []


def test_an_existing_table_is_left_alone_unless_it_is_to_be_rebuilt(
    lake: LocalStore, source: ReadSource
) -> None:
    driver_of(source, lake).batch()
    tools = Tools(lake, source)
    assert tools.work().done().state == "exists"
    assert tools.work(rebuild=True, dry_run=True).done().state == "planned"


def test_a_shadow_is_continued_beside_a_table_though_nobody_asks_for_a_rebuild(
    lake: LocalStore, source: ReadSource
) -> None:
    driver_of(source, lake).batch()
    Filling(source, lake, FixedClock(), 7, filled_from=FilledFrom.TOPIC)
    assert Tools(lake, source).work(dry_run=True).done().state == "planned"


def take_snapshot(source: ReadSource, events: slice = slice(None)) -> None:
    """The connector reads all rows into the first partition, or some of them."""
    source.topic.append(0, source.database.snapshot()[events])


def test_a_snapshot_fills_a_table_from_where_it_begins(
    lake: LocalStore, source: ReadSource
) -> None:
    source.topic.append(1, [*source.put(2), *source.delete(2)])
    tools = Tools(lake, source)
    with pytest.raises(UsageError, match="an incremental one doesn't say which row is its last"):
        tools.work(**FROM_SNAPSHOT).done()
    source.put(3)
    take_snapshot(source)
    plan = TopicFill(tools, FillRequest(**FROM_SNAPSHOT), NAME, NAME, tools.topic).plan()
    assert plan.ends == {0: Offset(1), 1: Offset(2)}
    assert first_source(plan).fence == below_snapshot(plan.start)
    assert tools.work(dry_run=True, **FROM_SNAPSHOT).done().state == "planned"


@pytest.mark.parametrize("comes", [True, False])
def test_the_last_row_of_a_snapshot_is_awaited(
    lake: LocalStore, source: ReadSource, comes: bool
) -> None:
    source.put(3)
    rows = source.database.snapshot()
    source.topic.append(0, rows[:1])
    tools = Tools(lake, source)
    tools.clock = Meanwhile(lambda: source.topic.append(1, rows[1:] if comes else []))
    fill = TopicFill(tools, FillRequest(**FROM_SNAPSHOT), NAME, NAME, tools.topic)
    if comes:
        assert fill.plan().ends == {0: Offset(1), 1: Offset(0)}
        return
    with pytest.raises(UsageError, match="isn't in the topic; run the command again"):
        fill.plan()


def test_a_snapshot_that_may_have_lost_rows_fills_only_a_table_that_is_compared(
    lake: LocalStore, source: ReadSource
) -> None:
    source.put(3)
    take_snapshot(source)
    source.topic.forget({0: Offset(2)})
    tools = Tools(lake, source)
    for verify in (True, False):
        request = FillRequest(**{**FROM_SNAPSHOT, "verify": verify})
        fill = TopicFill(tools, request, NAME, NAME, tools.topic)
        if verify:
            assert fill.plan().ends == {0: Offset(2), 1: Offset(0)}
            continue
        lost = r"deleted rows of it \(partitions 0\); rows of it may be missing .*\(partitions 1\)"
        with pytest.raises(UsageError, match=f"{lost}; leave out"):
            fill.plan()


def test_where_a_partition_fell_back_below_a_snapshot_its_start_is_unclear() -> None:
    source = ReadSource()
    before = [*source.put(1), *source.put(3)]
    source.topic.append(0, source.database.snapshot())
    after = [*source.put(1), *source.put(3)]
    source.topic.append(1, [*before, *after, *before, *after])
    found = newest_snapshot(source)
    assert found is not None
    assert found.starts == {0: Offset(0), 1: Offset(0)}
    assert found.unclear == (1,)


def test_snapshots_that_lack_rows_fill_no_table(lake: LocalStore, source: ReadSource) -> None:
    take_snapshot(source)
    tools = Tools(lake, source, tables=[{"match": "shop.goods", "whole_snapshots": False}])
    with pytest.raises(UsageError, match="lack rows"):
        tools.work(**FROM_SNAPSHOT).done()


def test_a_record_that_no_table_can_take_hides_no_snapshot(
    lake: LocalStore, source: ReadSource
) -> None:
    source.topic.append(0, ReadSource(with_schemas=False).put(9))
    take_snapshot(source)
    tools = Tools(lake, source)
    plan = TopicFill(tools, FillRequest(**FROM_SNAPSHOT), NAME, NAME, tools.topic).plan()
    assert plan.ends[0] == Offset(1)


def test_what_was_begun_is_given_up_once(lake: LocalStore, source: ReadSource) -> None:
    Filling(source, lake, FixedClock(), 7)
    tools = Tools(lake, source)
    assert tools.work(give_up=True).done().state == "given up"
    assert open_shadows(lake.within(NAME.path)) == []
    assert tools.work(give_up=True).done().state == "exists"
    assert find_snapshot(lake.within(NAME.path)) is None


def test_a_shadow_that_became_the_table_before_the_command_died_is_only_closed(
    lake: LocalStore, source: ReadSource
) -> None:
    filling = Filling(source, lake, FixedClock(), 7, filled_from=FilledFrom.TOPIC)
    filling.feed()
    shadow = filling.driver.table.snapshot
    assert shadow is not None
    create(
        filling.store,
        swap_intent(filling.store, shadow, 1, None),
        clock=filling.clock,
        entropy=filling.entropy,
        parameters={SHADOW_PARAMETER: SHADOW},
    )
    version, rows = find_snapshot(filling.store), rows_of(filling.store)
    assert Tools(lake, source).work().done().state == "filled"
    assert open_shadows(filling.store) == []
    assert find_snapshot(filling.store) == version
    assert rows_of(filling.store) == rows


def test_a_history_table_is_not_filled(lake: LocalStore, source: ReadSource) -> None:
    tools = Tools(lake, source, tables=[{"match": "shop.goods", "mode": "history"}])
    with pytest.raises(UsageError, match="filled by its topic alone"):
        tools.work().done()
    assert open_shadows(lake.within(NAME.path)) == []


@pytest.mark.slow
def test_a_shadows_runs_are_merged_once_there_are_many(
    lake: LocalStore, source: ReadSource
) -> None:
    filling = Filling(source, lake, FixedClock(), 7, filled_from=FilledFrom.TOPIC)
    table, upkeep = filling.driver.table, ShadowUpkeep(filling.driver.table, SeededEntropy(3))
    merges = 0
    for key in range(2, RUNS_MAX + 4):
        source.topic.append(0, source.put(key))
        filling.feed()
        version, runs = table.version, len(table.manifest.runs)
        upkeep.after_batch()
        if runs < RUNS_MAX:
            assert table.version == version
        else:
            assert (table.version, len(table.manifest.runs) < runs) == (version + 1, True)
            merges += 1
    assert merges
    filling.swap()
    assert rows_of(filling.store) == source.present()
