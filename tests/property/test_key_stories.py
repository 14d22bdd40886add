"""Whatever happened to a table, the story of each key agrees with an oracle's record of fates."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.choices import NotInserts
from lakesplice.model.names import TableName
from lakesplice.model.position import Position
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.explaining.key_story import KeyStory, explain_key
from lakesplice.table.explaining.version_walk import Effect
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.fates import FateOracle, access_to, told_of
from tests.support.simulated import Source, folder, truncate_at
from tests.support.steps import KEYS, Step, steps, take_step

MODES = ("rows change", "insert-only", "partitioned")
BROKEN = st.tuples(st.just("broken"), st.integers(0, KEYS - 1), st.integers(0, 1))
REPEATED = st.tuples(st.just("send again"), st.integers(1, 4), st.integers(0, 1))


class Scene:
    """A table whose records are judged as its versions take them."""

    def __init__(self, lake: LocalStore, mode: str) -> None:
        self.source = Source()
        by_name = mode == "partitioned"
        policy = SchemaPolicy(partition_by=("name",)) if by_name else SchemaPolicy()
        never = NotInserts.DEAD_LETTER if mode == "insert-only" else None
        self.driver = SimulatedDriver(
            lake,
            self.source.topic,
            FixedClock(),
            SeededEntropy(1),
            ranges=2,
            read_tasks=2,
            not_inserts=never,
            policy=policy,
        )
        self.store = self.driver.table.store
        name = TableName.from_topic(self.source.topic.name)
        self.reading = RecordReading(table=name, not_inserts=never, policy=policy)
        self.oracle = FateOracle(self.store, self.source.topic, insert_only=never is not None)

    def take(self, step: Step) -> None:
        what, number, partition = step
        topic = self.source.topic
        if what == "broken":
            # A statement that leaves the row as it was gives no event.
            events = self.source.put(number)[:1]
            topic.append(partition, [event._replace(value=b"{") for event in events])
        elif what == "send again":
            topic.append(partition, list(topic.events(partition)[-number:]))
        elif what == "truncate":
            self.truncate()
        else:
            take_step(step, self.source, self.driver)
        self.oracle.catch_up()

    def truncate(self) -> None:
        """Tell of a TRUNCATE at the place of the newest change."""
        if keys := self.source.keys:
            event = self.source.delete(keys[0])[0]
            told = truncate_at(event)
            self.source.topic.append(0, [told])

    def story(self, key: int) -> KeyStory:
        access = access_to(self.source.topic, self.reading)
        return explain_key(self.store, open_snapshot(self.store), key, access=access)


@settings(max_examples=examples(40), deadline=None)
@given(
    mode=st.sampled_from(MODES),
    taken=st.lists(steps("truncate", puts=2) | BROKEN | REPEATED, min_size=4, max_size=40),
)
def test_the_story_of_every_key_agrees_with_the_record_of_fates(
    mode: str, taken: list[Step]
) -> None:
    with folder() as path:
        scene = Scene(LocalStore(path), mode)
        for partition in (0, 1):
            scene.source.topic.append(partition, scene.source.put(partition))
        assert scene.driver.batch() is CommitOutcome.DONE
        scene.oracle.catch_up()
        for step in taken:
            if mode != "insert-only" or step[0] != "truncate":
                scene.take(step)
        judged = scene.oracle.rest()
        rows = Table(scene.store).read(include_system=True).to_pylist()
        live = {row["id"]: Position(row["_position_file"], row["_position_offset"]) for row in rows}
        for key in range(KEYS):
            story = scene.story(key)
            assert sorted(told_of(story.records)) == sorted(judged.get(key, []))
            require_whole(story, live.get(key))


def require_whole(story: KeyStory, live: Position | None) -> None:
    """Its changes end where the row stands, and its row is the one that readers see."""
    shown = story.row is not None and not story.row.deleted
    assert (story.row.position if shown and story.row else None) == live
    stands = [one for one in story.changes if one.effect is not Effect.OLDER]
    if story.row is None:
        assert not stands or stands[-1].effect is Effect.PURGED
    else:
        assert stands[-1].position == story.row.position
