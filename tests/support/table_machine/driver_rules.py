"""Rules about a table's drivers: batches, crashes, a second driver, a reload."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lakesplice.errors import FencedError, MissingFileError
from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.missing_offsets import after_loss, can_continue
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.spark.jobs.batch_plan import TaskError
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.reset import TopicStart, plan_reset
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.reading.table import Table
from lakesplice.testing.faulty_store import How
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.table_machine.source_rules import KEYS
from tests.support.table_machine.state import FEW, PARTITIONS, MachineState
from tests.support.traps import CALLS, CRASHES, FAULTS, require_excused


class DriverRules(MachineState):
    """Drivers read batches, crash, and replace each other."""

    def ends(self, driver: SimulatedDriver, ahead: tuple[int, int]) -> dict[int, Offset]:
        here = driver.table.next_offsets((0, 1))
        return {
            at: Offset(min(here[at] + ahead[at], end)) for at, end in self.source.topic.ends.items()
        }

    def stood(self) -> dict[int, Offset]:
        """Where the table stands on the store; another driver may have brought it further."""
        offsets = Table(self.bare).offsets if self.born() else {}
        return {at: Offset(offsets.get(at, 0)) for at in (0, 1)}

    @rule(ahead=st.sampled_from([(9, 9), (9, 0), (0, 9)]) | st.tuples(FEW, FEW))
    def run_a_batch(self, ahead: tuple[int, int]) -> None:
        self.take(self.ends(self.driver, ahead))

    def take(self, ends: dict[int, Offset] | None = None) -> None:
        """Run a batch, unless a zombie was quicker."""
        ended = self.driver.attempt(ends)
        if ended is not CommitOutcome.DONE:
            assert isinstance(ended, Conflict), ended
            assert self.zombies

    @rule(ahead=st.tuples(FEW, FEW), calls=CALLS, how=FAULTS | CRASHES)
    def run_a_batch_that_fails(self, ahead: tuple[int, int], calls: int, how: How) -> None:
        self.trap.arm(calls, how)
        ends = self.ends(self.driver, ahead)
        self.guarded(lambda: require_excused(self.driver.attempt(ends)))

    @rule(key=st.integers(0, KEYS - 1), first=PARTITIONS)
    def hear_of_the_later_change_first(self, key: int, first: int) -> None:
        self.take()
        here = self.driver.table.next_offsets((0, 1))
        self.send(self.source.put(key), first)
        self.send(self.source.put(key), 1 - first)
        self.take({**here, 1 - first: self.source.topic.ends[1 - first]})

    @rule(back=st.integers(-3, 3))
    def run_a_batch_from_elsewhere(self, back: int) -> None:
        here, ends = self.driver.table.next_offsets((0, 1)), self.source.topic.ends
        starts = {at: Offset(min(max(0, offset - back), ends[at])) for at, offset in here.items()}
        stood = self.stood()
        ended = self.driver.attempt(starts=starts)
        assert not isinstance(ended, TaskError), ended
        unchanged = not self.born() or Table(self.bare).version == self.version
        assert starts in (here, stood) or isinstance(ended, Conflict) or unchanged

    @rule()
    def crash(self) -> None:
        self.restart_driver()

    @rule()
    def let_a_second_driver_take_over(self) -> None:
        self.zombies.append(self.driver)
        self.driver, self.maintenance = self.new_driver(), None

    @precondition(lambda self: self.zombies)
    @rule(at=FEW, ahead=st.tuples(FEW, FEW))
    def let_a_zombie_go_on(self, at: int, ahead: tuple[int, int]) -> None:
        zombie = self.zombies[at % len(self.zombies)]
        version = self.version
        try:
            zombie.attempt(self.ends(zombie, ahead))
        except FencedError:
            assert Table(self.bare).version == version
            self.zombies.remove(zombie)
        except MissingFileError:
            # It stood still for so long that what it rests on is past its retention.
            retained_from = Table(self.bare).snapshot.manifest.retention.retained_from
            assert zombie.table.version < retained_from
            self.zombies.remove(zombie)

    def can_be_directed(self) -> bool:
        """A driver directs only what it knows as it is, and never beside another one."""
        known = self.driver.table.snapshot
        return known is not None and known.version == Table(self.bare).version

    @precondition(lambda self: self.can_be_directed())
    @rule(ahead=st.tuples(FEW, FEW))
    def lose_records_and_continue(self, ahead: tuple[int, int]) -> None:
        topic, table = self.source.topic, self.driver.table
        there = self.ends(self.driver, ahead)
        assert can_continue(table.source, topic.topic_id, topic.ends)
        table.continue_at(lambda source: after_loss(source, topic.topic_id, there), "lost")

    @precondition(lambda self: self.can_be_directed())
    @rule(back=st.tuples(FEW, FEW))
    def read_again(self, back: tuple[int, int]) -> None:
        here = self.driver.table.next_offsets((0, 1))
        there = {at: Offset(max(0, offset - back[at])) for at, offset in here.items()}
        self.driver.table.continue_at(lambda source: moved(source, there), "read again")
        self.offsets = {}

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(calls=CALLS, how=st.none() | FAULTS | CRASHES)
    def take_anew(self, calls: int, how: How | None) -> None:
        table = self.driver.table
        assert table.snapshot is not None
        start = TopicStart(self.source.topic.topic_id, {0: Offset(0), 1: Offset(0)})
        intent = plan_reset(table.snapshot, {table.source.topic: start}, table.generation)
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: table.commit(intent))
        newest = Table(self.bare)
        if newest.version > self.version and next(newest.history()).info.operation == "RESET":
            self.offsets = {}
