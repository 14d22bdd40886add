"""Commits one table's part of a batch once its tasks have finished."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from lakesplice.apps.service.batching.batch_selection import TopicSpan, refuse
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.restart import Restart, RestartReason
from lakesplice.apps.service.batching.table_failures import TableFailures
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.errors import FencedError, SourceUnavailable
from lakesplice.model.manifest import DeadLetterRef
from lakesplice.spark.jobs.batch_plan import TaskError, TopicResult
from lakesplice.spark.kafka.dead_letter_topic import DeadLetterTopic
from lakesplice.table.files.dead_letters import dead_letters_of
from lakesplice.table.ingest.batch_commit import CommitOutcome, commit_contribution
from lakesplice.table.protocol.commit import Conflict
from lakesplice.telemetry.catalogue import UNSENT_DEAD_LETTERS


class PartOutcome(Enum):
    """How a table's part of a batch ended."""

    COMMITTED = auto()
    """Committed, up to where the table could continue; a table that must stop is parked."""
    RUN_AGAIN = auto()
    """The table's schema was extended: its tasks run again with the new one."""
    REFUSED = auto()
    """Nothing was committed; the running query skips the table."""


@dataclass(frozen=True)
class TableCommits:
    """Commits the tables of one lane; safe from several threads, one per table.

    Raises only `FencedError`. Any other failure concerns one table alone, and is a result.
    """

    driver: Driver
    drops: TableDrops
    dead_letters: DeadLetterTopic | None
    restart: Restart
    failures: TableFailures

    def commit(
        self,
        spans: Mapping[str, TopicSpan],
        versions: Mapping[str, int],
        results: Mapping[str, TopicResult],
    ) -> dict[str, PartOutcome]:
        """Commit the parts of a table's topics, one after the other; those without a result have no
        outcome.
        """
        return {
            name: self._commit(span, versions[name], results[name])
            for name, span in spans.items()
            if name in results
        }

    def _commit(self, span: TopicSpan, planned_on: int, result: TopicResult) -> PartOutcome:
        table = span.table
        if result.errors:
            return self._failed(table, result.errors[0])
        try:
            contribution = result.contribution(planned_on, span.starts, span.ends)
            table.setting_warnings.look_at(contribution.reports)
            settings = self.driver.settings
            policy, limit = settings.policy(table.origin), settings.dead_letters.limit
            outcome = commit_contribution(
                table, contribution, policy, limit, partial(self._send, table)
            )
        except FencedError:
            raise
        except Exception as error:  # whatever it is concerns one table, and the others continue
            return self._failed(table, TaskError.of(error, traceback.format_exc(limit=8)))
        if isinstance(outcome, Conflict):
            return self._overtaken(table, f"{outcome.reason}: {outcome.detail}")
        if outcome is CommitOutcome.AGAIN:
            return PartOutcome.RUN_AGAIN
        self._committed(table)
        return PartOutcome.COMMITTED

    def _committed(self, table: ServiceTable) -> None:
        self.failures.went_well(table)
        if table.parked is not None:
            table.report_parking()
            self.restart.ask(RestartReason.REDIRECT)
        elif self.drops.is_due(table):  # of a table before its first change
            self.restart.ask(RestartReason.REDIRECT)

    def _failed(self, table: ServiceTable, error: TaskError) -> PartOutcome:
        if self.failures.failed(table, error):
            self.restart.ask(RestartReason.REDIRECT)
        return PartOutcome.REFUSED

    def _overtaken(self, table: ServiceTable, detail: str) -> PartOutcome:
        if self.failures.overtaken(table, detail):
            refuse(self.driver, table, detail, self.restart)
        return PartOutcome.REFUSED

    def _send(self, table: ServiceTable, dead_letters: Sequence[DeadLetterRef]) -> None:
        if self.dead_letters is not None:
            send_dead_letters(self.driver, table, dead_letters, self.dead_letters)


def send_dead_letters(
    driver: Driver, table: ServiceTable, refs: Sequence[DeadLetterRef], topic: DeadLetterTopic
) -> None:
    """Send the dead letters of some files to the topic for them; what it doesn't accept is counted
    and logged.

    The batch continues without it, since the lake has the durable dead letter. Blocks for at most
    about twice the request timeout.
    """
    dead_letters = dead_letters_of(table.store, refs)
    try:
        topic.send(str(table.name), dead_letters)
    except SourceUnavailable as error:
        driver.metrics.add(UNSENT_DEAD_LETTERS, len(dead_letters), table=str(table.name))
        driver.log.warning(
            "dead-letters-unsent",
            table=str(table.name),
            dead_letters=len(dead_letters),
            error=str(error),
        )
