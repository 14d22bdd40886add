"""The steps of random tests with a table of few keys and its driver."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from lakesplice.model.manifest import RunRef
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkReason
from lakesplice.model.progress.source_state import SourceState
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Redirect
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import Source

ALL = 1 << 60
KEYS = 3
Step = tuple[str, int, int]


def steps(*more: str, puts: int = 1) -> st.SearchStrategy[Step]:
    """A step: what it does, to which key, in which partition of the topic. Puts weigh `puts`."""
    keys, partitions = st.integers(0, KEYS - 1), st.integers(0, 1)
    of_table = ["batch", "compact", "purge", "merge", "again", "cluster", *more]
    return st.one_of(
        *[st.tuples(st.just("put"), keys, partitions)] * puts,
        st.tuples(st.just("delete"), keys, partitions),
        st.tuples(st.just("hear of one"), st.just(0), partitions),
        st.tuples(st.sampled_from(of_table), st.just(0), st.just(0)),
    )


def take_step(step: Step, source: Source, driver: SimulatedDriver) -> None:
    """Do it; what a test adds to the steps does nothing here."""
    what, key, partition = step
    if what == "put":
        source.topic.append(partition, source.put(key))
    elif what == "delete" and key in source.keys:
        source.topic.append(partition, source.delete(key))
    elif what == "batch":
        assert driver.batch() is CommitOutcome.DONE
    elif what == "hear of one":
        ahead = driver.table.next_offsets((0, 1))
        ends = {**ahead, partition: source.topic.ends[partition]}
        assert driver.batch(ends) is CommitOutcome.DONE
    elif what == "compact":
        driver.compact()
    elif what == "merge":
        driver.merge_files(2)
        driver.merge_runs(2)
    elif what == "cluster" and driver.table.manifest.files:
        cluster_beside_a_batch(driver)
    elif what == "purge":
        driver.purge(ALL)
    elif what == "again":
        read_again(driver)


def cluster_beside_a_batch(driver: SimulatedDriver) -> None:
    """Lay files out while a batch is read; changes that come for them are carried."""
    table, clustering = driver.table, driver.clustering(("n",))
    assert table.snapshot is not None
    planned = clustering.plan(table.snapshot, table.generation)
    assert driver.batch() is CommitOutcome.DONE
    if planned is not None and isinstance(table.commit(planned), Conflict):
        again = clustering.plan(table.snapshot, table.generation)
        # A row that moves to another partition replaces the file that it leaves.
        if set(planned.inputs) <= table.snapshot.manifest.files.keys():
            assert again is not None
            assert again.outputs == planned.outputs, "nothing but what waits is written again"
        assert again is None or isinstance(table.commit(again), Committed)


def redirect(
    driver: SimulatedDriver,
    *,
    source: SourceState | None = None,
    parked: ParkReason | None = None,
    runs: tuple[RunRef, ...] | None = None,
) -> None:
    """Commit a redirection of the table with these fields."""
    table = driver.table
    intent = Redirect(table.generation, table.version, source, parked, runs)
    assert isinstance(table.commit(intent), Committed)


def read_again(driver: SimulatedDriver) -> None:
    """Send the table back to the beginning of its topic, and read all of it."""
    source = driver.table.source
    partitions = {
        at: replace(state, next_offset=Offset(0)) for at, state in source.partitions.items()
    }
    redirect(driver, source=replace(source, partitions=partitions))
    assert driver.batch() is CommitOutcome.DONE
