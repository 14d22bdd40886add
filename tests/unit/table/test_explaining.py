"""Why a row is as it is: the story of a key, of each kind of table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.errors import UsageError
from lakesplice.formats.events import declare
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.keys.requested_key import RequestedKey
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import create_table
from lakesplice.table.explaining.key_story import KeyStory, explain_key
from lakesplice.table.explaining.record_ranges import choose_ranges
from lakesplice.table.explaining.record_values import RecordAccess, RecordOutcome
from lakesplice.table.explaining.version_walk import Effect
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.versions import read_version
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.simulation import SimulatedTopic
from tests.support.by_hand import COLUMNS, created, given, tools
from tests.support.fates import access_to
from tests.support.partial_images import APPLY, Life, event
from tests.support.partial_images import COLUMNS as ITEMS
from tests.support.partial_images import row as item
from tests.support.shards import SHAPE, Scene, filled
from tests.support.simulated import Source, driver_of
from tests.support.steps import ALL

GOODS = RecordReading(table=TableName("shop", "goods"))


def story_of(store: Store, key: object, access: RecordAccess | None = None) -> KeyStory:
    return explain_key(store, open_snapshot(store), key, access=access)


def told(story: KeyStory) -> list[tuple[int, Effect]]:
    return [(change.version, change.effect) for change in story.changes]


def fates(story: KeyStory) -> list[RecordOutcome]:
    return [fate.outcome for fate in story.records]


@pytest.mark.slow
def test_a_table_fed_by_hand_tells_its_upserts_and_shows_values_only_when_asked(
    tmp_path: Path,
) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [{"id": 1, "name": "secret", "n": 0}, {"id": 2, "name": "b", "n": 0}])
    table.upsert(given([{"id": 1, "n": 5}], ["id", "n"]))
    table.compact()
    table.upsert(given([], COLUMNS.names), delete=given([{"id": 2}], ["id"]))
    story = story_of(store, 1)
    assert told(story) == [(0, Effect.INSERTED), (1, Effect.UPDATED), (2, Effect.MERGED)]
    assert story.changes[1].columns == ("n",)
    assert "secret" not in repr(story)
    shown = explain_key(store, open_snapshot(store), 1, values=True)
    assert shown.row is not None
    assert shown.row.values == {"id": 1, "name": "secret", "n": 5, "price": None}
    assert told(story_of(store, 2)) == [(0, Effect.INSERTED), (3, Effect.DELETED)]
    assert story_of(store, 3).row is None


def test_an_upsert_that_writes_base_files_at_once_is_reported_like_any_other(
    tmp_path: Path,
) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [{"id": 1, "n": 0}])
    table.upsert(given([{"id": 1, "n": 5}], COLUMNS.names), merge=True)
    table.upsert(delete=given([{"id": 1}], ["id"]), merge=True)
    assert not open_snapshot(store).manifest.deltas
    found = told(story_of(store, 1))
    assert found == [(0, Effect.INSERTED), (1, Effect.UPDATED), (2, Effect.DELETED)]


def test_a_composite_key_is_given_in_key_order_or_by_column(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    rows = pa.table({"day": pa.array([0], pa.date32()), "name": ["a"], "n": [1]})
    create_table(store, rows, ["name", "day"], tools())
    schema = open_snapshot(store).manifest.schema
    one = RequestedKey.of(schema, ["a", "1970-01-01"])
    assert one == RequestedKey.of(schema, {"day": "1970-01-01", "name": "a"})
    assert story_of(store, ("a", "1970-01-01")).row is not None
    for wrong in (["a"], "a", {"name": "a"}, ["a", "no day"], ["a", None]):
        with pytest.raises(UsageError, match="key"):
            RequestedKey.of(schema, wrong)


@pytest.mark.slow
def test_the_story_names_vacuumed_versions_and_reports_the_others(tmp_path: Path) -> None:
    table = created(LocalStore(tmp_path), [{"id": 1, "n": 0}])
    clock = table._writer.tools.clock
    assert isinstance(clock, FixedClock)
    for n in range(3):
        clock.advance(86_400)
        table.upsert(given([{"id": 1, "n": n}], COLUMNS.names))
        table.compact()
    table.vacuum(retention_hours=36)
    story = HandFedTable(LocalStore(tmp_path), tools(9))
    found = story_of(LocalStore(tmp_path), 1)
    assert found.vacuumed
    assert found.first == story.snapshot.manifest.retention.retained_from > 0
    assert told(found)[0] == (found.first, Effect.PRESENT)


@pytest.mark.slow
def test_a_purged_row_has_left_and_a_replay_of_it_is_below_the_floor(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    store = driver.table.store
    put, gone = source.put(0), source.delete(0)
    source.topic.append(0, [*put, *gone])
    source.topic.append(1, source.put(1))
    driver.batch()
    source.topic.append(0, source.put(2))
    source.topic.append(1, source.put(3))
    driver.batch()
    driver.purge(ALL)
    source.topic.append(0, put)
    driver.batch()
    story = story_of(store, 0, access_to(source.topic, GOODS))
    assert story.row is None
    assert [entry.live for entry in story.entries] == [False]
    assert told(story)[-1][1] is Effect.PURGED
    assert fates(story) == [
        RecordOutcome.FOLDED,
        RecordOutcome.APPLIED,
        RecordOutcome.IGNORED,
        RecordOutcome.BELOW_FLOOR,
    ]
    assert story.records[0].by == story.records[1].position
    assert story.records[3].by == driver.table.manifest.purge_floor


def test_a_row_that_was_laid_out_again_is_the_same_at_another_address(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for _ in range(2):
        source.topic.append(0, source.put(0))
        driver.batch()
    driver.cluster(("n",))
    story = story_of(driver.table.store, 0, access_to(source.topic, GOODS))
    effects = [effect for _, effect in told(story)]
    assert effects == [Effect.INSERTED, Effect.UPDATED, Effect.READDRESSED]
    assert [entry.live for entry in story.entries] == [True, False]


@pytest.mark.slow
def test_a_late_change_has_no_effect_and_names_the_rows_position(
    tmp_path: Path,
) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(0))
    driver.batch()
    late, newer = source.put(0), source.put(0)
    source.topic.append(1, newer)
    driver.batch()
    source.topic.append(0, late)
    driver.batch()
    story = story_of(driver.table.store, 0, access_to(source.topic, GOODS))
    assert [effect for _, effect in told(story)] == [
        Effect.INSERTED,
        Effect.UPDATED,
        Effect.OLDER,
    ]
    assert fates(story) == [RecordOutcome.APPLIED, RecordOutcome.APPLIED, RecordOutcome.OLDER]
    assert story.row is not None
    stood = story.row.position
    assert (
        story.changes[2].position_before
        == story.records[2].by
        == stood
        == story.records[1].position
    )


@pytest.mark.slow
def test_a_row_that_moved_between_partitions_is_one_row_with_an_older_place(
    tmp_path: Path,
) -> None:
    source = Source()
    policy = SchemaPolicy(partition_by=("name",))
    driver = driver_of(source, LocalStore(tmp_path), policy=policy)
    for _ in range(6):  # until its name has another value
        source.topic.append(0, source.put(0))
        driver.batch()
    story = story_of(driver.table.store, 0)
    assert Effect.MOVED in {change.effect for change in story.changes}
    assert len(story.entries) > 1
    assert [entry.decides for entry in story.entries][:2] == [True, False]
    assert story.row is not None
    assert not story.row.deleted


@pytest.mark.slow
def test_a_restore_is_part_of_the_story_and_records_are_read_twice(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    table = driver.table
    source.topic.append(1, source.put(1))
    for _ in range(2):
        source.topic.append(0, source.put(0))
        driver.batch()
    assert table.snapshot is not None
    restore(
        table.store,
        table.snapshot,
        table.version - 1,
        table.commit,
        table.generation,
        retries=table.retries(),
    )
    driver.batch()
    story = story_of(table.store, 0, access_to(source.topic, GOODS))
    assert [effect for _, effect in told(story)] == [
        Effect.INSERTED,
        Effect.UPDATED,
        Effect.RESTORED,
        Effect.UPDATED,
    ]
    assert [(fate.offset, fate.version) for fate in story.records] == [(0, 1), (1, 2), (1, 4)]
    other = story_of(table.store, 1, access_to(source.topic, GOODS))
    assert told(other) == [(1, Effect.INSERTED)], "the restored version had the same row"


@pytest.mark.slow
def test_a_shards_story_has_only_records_of_its_own_topic(tmp_path: Path) -> None:
    scene = filled(Scene(tmp_path), 2)
    topics = {shard.topic.name: shard for shard in scene.shards}

    class Both:
        def offsets(self, topic: str) -> OffsetRanges:
            return access_to(topics[topic].topic, GOODS).records.offsets(topic)

        def read(self, topic: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
            return access_to(topics[topic].topic, GOODS).records.read(topic, ranges)

    def reading(source: SourceState) -> RecordReading:
        name = TableName(topics[source.topic].name, "goods")
        return RecordReading(table=name, shape=SHAPE)

    access = RecordAccess(Both(), reading)
    story = story_of(scene.store, {"database_name": "shop_1", "id": 1}, access)
    assert [fate.topic for fate in story.records] == [scene.second.topic.name]
    assert fates(story) == [RecordOutcome.APPLIED]


@pytest.mark.slow
def test_an_older_partial_image_is_reported_as_applied_where_a_column_is_from_it(
    tmp_path: Path,
) -> None:
    life = Life(LocalStore(tmp_path))
    life.topic.append(0, [event("insert", 1, item(1))])
    life.driver.batch()
    late = event("update", 2, {"id": 1, "stock": 7}, {"stock": 1})
    life.topic.append(1, [event("update", 3, {"id": 1, "name": "new"}, {"name": "item 1"})])
    life.driver.batch()
    life.topic.append(0, [late, event("delete", 4, {"id": 9})])
    life.driver.batch()
    reading = RecordReading(table=TableName("shop", "items"), declared=declare(ITEMS), policy=APPLY)
    story = story_of(life.store, 1, access_to(life.topic, reading))
    assert story.row is not None
    assert story.row.position == max(fate.position or Position(-1, -1) for fate in story.records)
    assert set(fates(story)) == {RecordOutcome.APPLIED}
    assert len(story.records) == 3


def test_a_dead_letter_is_one_whatever_the_configuration_says_today(tmp_path: Path) -> None:
    source = Source(with_schemas=False)
    wrong = {"id": "bigint", "name": "int", "n": "int"}
    right = {**wrong, "name": "string"}
    driver = driver_of(source, LocalStore(tmp_path), declared=declare(wrong))
    source.database.insert("goods", [(5, None, 1)])
    source.topic.append(1, source.database.drain())
    source.topic.append(0, source.put(6))
    driver.batch()
    reading = RecordReading(table=GOODS.table, declared=declare(right))
    story = story_of(driver.table.store, 6, access_to(source.topic, reading))
    assert fates(story) == [RecordOutcome.DEAD_LETTER]
    assert story.records[0].reason == "wrong-type"
    assert [letter.offset for letter in story.dead_letters] == [0]
    assert story_of(driver.table.store, 7).dead_letters == ()


@pytest.mark.slow
def test_records_beyond_the_limit_or_deleted_from_the_topic_are_named(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for count in (1, 3, 1):
        for _ in range(count):
            source.topic.append(0, source.put(0))
        driver.batch()
    store, snapshot = driver.table.store, open_snapshot(driver.table.store)
    access = access_to(source.topic, GOODS)
    some = explain_key(store, snapshot, 0, access=access, records_max=2)
    assert [fate.version for fate in some.records] == [1, 3]
    assert some.left_out == (f"{source.topic.name}: version 2: its 3 records were not read",)
    lost = RecordAccess(_Forgotten(source.topic, 2), access.reading)
    rest = explain_key(store, snapshot, 0, access=lost)
    assert [fate.version for fate in rest.records] == [3]
    assert len(rest.left_out) == 2
    source.topic.append(0, [change for _ in range(3) for change in source.put(0)])
    newest = explain_key(store, snapshot, 0, access=access, records_max=2)
    assert [fate.version for fate in newest.records] == [None, None]
    assert len(newest.left_out) == 4, "all records were read of the bound, none is left"


class _Forgotten:
    """A topic that has lost its first records."""

    def __init__(self, topic: SimulatedTopic, count: int) -> None:
        self._whole, self._count = access_to(topic, GOODS).records, count

    def offsets(self, topic: str) -> OffsetRanges:
        return {
            at: OffsetRange(Offset(min(self._count, end)), end)
            for at, (_, end) in self._whole.offsets(topic).items()
        }

    def read(self, topic: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
        return self._whole.read(topic, ranges)


def test_a_partition_of_which_a_version_read_nothing_has_lost_nothing_of_it(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for partitions in ((0, 1), (0,)):
        for partition in partitions:
            source.topic.append(partition, source.put(partition))
        driver.batch()
    store = LocalStore(tmp_path / driver.name.path)
    versions = [read_version(store, number) for number in range(driver.table.version + 1)]
    earliest, ends = {0: Offset(0), 1: Offset(5)}, {0: Offset(2), 1: Offset(5)}
    chosen = choose_ranges(versions, source.topic.name, earliest, ends, records_max=9)
    assert chosen.ranges[-1].offsets == {0: (1, 2)}
    assert chosen.ranges[-1].read_by == versions[-1]
