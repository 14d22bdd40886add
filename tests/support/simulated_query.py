"""Queries of the simulated service: they run a batch when they are waited for."""

from __future__ import annotations

from typing import Any, Protocol

from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.errors import RetryableError
from lakesplice.model.offsets import Offset
from lakesplice.spark.kafka.query import QueryPlan
from tests.support.simulated_kafka import LookedAtBroker


class QueriedService(Protocol):
    """What a query needs of the service. The test sets the flags: `query_fails` and `stop_fails`
    count once; with `limits_whole_batches` a batch's limit is for all its partitions together.
    """

    broker: LookedAtBroker
    query_fails: bool
    stop_fails: bool
    limits_whole_batches: bool

    def tick(self, _seconds: float) -> None:
        """Let the next thing happen."""


class SimulatedQuery:
    """A query of the simulated service: a batch is run when it is waited for. `is_stopped` once it
    was told to stop, `is_drained` if no batch could begin any more by then.
    """

    def __init__(self, service: QueriedService, plan: QueryPlan, runner: BatchRunner) -> None:
        self._service = service
        self.runner = runner
        self._once = plan.trigger_seconds is None
        self._most = plan.offsets_per_batch_max
        self._at = {topic: dict(offsets) for topic, offsets in plan.starts.items()}
        self._batches = 0
        self.topics = frozenset(plan.starts)
        self.is_stopped = self.is_drained = False

    def wait(self, seconds: float) -> bool:
        """Run a batch, if there is anything to read."""
        service = self._service
        service.tick(seconds)
        if service.query_fails:
            service.query_fails = False
            raise RetryableError("the streaming query failed", cause="told to")
        if self.run_batch():
            return False
        return self._once

    def run_batch(self) -> bool:
        """Run a batch; False if there is nothing to read."""
        service = self._service
        if service.broker.leaderless & self.topics:
            raise RetryableError("the streaming query failed", cause="no node for a partition")
        ends = self._ends()
        if ends != self._at:
            frame: Any = (service.broker, self._at, ends)
            try:
                self.runner(frame, self._batches, self._at, ends)
            except AssertionError:
                raise
            except Exception as error:
                raise RetryableError("the streaming query failed", cause=repr(error)) from error
            self._at, self._batches = ends, self._batches + 1
            return True
        return False

    def stop(self) -> None:
        """End; it may fail once if the test says so."""
        self.is_stopped, self.is_drained = True, self.runner._ending.is_set()
        if self._service.stop_fails:
            self._service.stop_fails = False
            raise RetryableError("the query did not stop", cause="told to")

    def _ends(self) -> dict[str, dict[int, Offset]]:
        """So many records of each partition; or, as Spark limits a batch, so many in all, in
        proportion to what each partition has, and one at least.
        """
        topics = self._service.broker.topics
        if not self._service.limits_whole_batches:
            return {
                topic: {
                    n: Offset(min(topics[topic].ends[n], here + self._most))
                    for n, here in at.items()
                }
                for topic, at in self._at.items()
            }
        ends = {topic: {n: topics[topic].ends[n] for n in at} for topic, at in self._at.items()}
        sizes = {(t, n): end - self._at[t][n] for t, of in ends.items() for n, end in of.items()}
        total = sum(sizes.values())
        if total <= self._most:
            return ends
        return {
            topic: {
                number: Offset(
                    self._at[topic][number] + min(size, max(1, self._most * size // total))
                )
                if (size := sizes[topic, number])
                else end
                for number, end in of.items()
            }
            for topic, of in ends.items()
        }
