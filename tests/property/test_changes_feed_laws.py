"""The changes that a table fed by a topic reports are its real changes, whatever the topic
contains.

This includes `readStream`, which reads the same changes in parts (`apps/spark_format/source.py`).
"""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.delta_feed import require_delta_feed
from tests.support.drawing import examples
from tests.support.feeds import require_feed
from tests.support.simulated import Source, driver_of, folder
from tests.support.steps import Step, steps, take_step

POLICIES = [SchemaPolicy(), SchemaPolicy(partition_by=("name",))]


def send_again(source: Source, partition: int, key: int) -> None:
    """What the partition brought comes once more, from some record on, as after a restart."""
    events = source.topic.events(partition)
    source.topic.append(partition, events[key:])


def take(step: Step, source: Source, driver: SimulatedDriver) -> None:
    what, key, partition = step
    if what == "send again":
        send_again(source, partition, key)
    elif what == "restore":
        table = driver.table
        assert table.snapshot is not None
        older = table.version * key // 3
        if older < table.version:
            restore(table.store, table.snapshot, older, table.commit, retries=table.retries())
    else:
        take_step(step, source, driver)


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        steps("restore", puts=2)
        | st.tuples(st.just("send again"), st.integers(0, 2), st.integers(0, 1)),
        min_size=3,
        max_size=14,
    ),
    st.sampled_from(POLICIES),
)
@example([("put", 0, 0), ("put", 0, 0), ("batch", 0, 0), ("send again", 0, 0)], SchemaPolicy())
def test_the_changes_of_a_table_lead_from_any_version_to_each_later_one(
    taken: list[Step], policy: SchemaPolicy
) -> None:
    source = Source()
    with folder() as path:
        driver = driver_of(source, LocalStore(path), policy=policy)
        for partition in (0, 1):
            source.topic.append(partition, source.put(partition))
        assert driver.batch() is CommitOutcome.DONE
        driver.table.set_change_feed(on=True)
        for step in taken:
            take(step, source, driver)
        assert driver.batch() is CommitOutcome.DONE
        require_feed(driver.table.store)
        require_delta_feed(driver.table.store, path / driver.name.path)
