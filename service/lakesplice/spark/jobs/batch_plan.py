"""The input and the answers of one batch's tasks. Values only; the driver makes the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakesplice.errors import LakespliceError, class_in_tree
from lakesplice.model.manifest import DeadLetterRef
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.known_topic import NOTHING_KNOWN, KnownTopic
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.table.ingest.append import Appended, AppendPlan
from lakesplice.table.ingest.batch_commit import CommitContribution
from lakesplice.table.protocol.ports import Entropy, SchemaSource, Store


@dataclass(frozen=True, kw_only=True)
class TopicPlan:
    """One topic of the batch: its table as it stands, and the shuffle target of each hash range.

    `partitions` says where each partition stands, `known` what the table knows of the topic, and
    `reading` how its records are read.
    """

    topic: str
    table: TableName
    partitions: Mapping[int, PartitionState]
    append: AppendPlan
    targets: tuple[int, ...]
    reading: RecordReading
    known: KnownTopic = NOTHING_KNOWN


@dataclass(frozen=True)
class BatchPlan:
    """The whole batch. `topics` are in the order of their numbers; records of other topics are
    skipped. `schemas` is the registry of the schemas that records name, None if there is none.
    """

    lake: Store
    entropy: Entropy
    topics: tuple[TopicPlan, ...]
    targets: int
    read_tasks: int
    schemas: SchemaSource | None = None


@dataclass(frozen=True)
class TaskError:
    """An exception of a task, as a value: the table's part of the batch failed.

    `kind` is the name of its class, for people; `category` is its class in the tree of `errors.py`,
    which decides what happens. None means that it isn't one of our errors.
    """

    kind: str
    message: str
    trace: str
    category: type[LakespliceError] | None = None

    @classmethod
    def of(cls, error: Exception, trace: str = "") -> TaskError:
        """Return an exception, of any class, as a value that can be sent to the driver."""
        return cls(type(error).__name__, str(error), trace, class_in_tree(error))

    def is_a(self, *categories: type[LakespliceError]) -> bool:
        """Whether the error is of one of these classes, or of a subclass."""
        return self.category is not None and issubclass(self.category, categories)


@dataclass(frozen=True)
class TopicRead:
    """The result of one task of the first stage for a topic's partitions."""

    topic: str
    reports: tuple[PartitionReport, ...]
    dead_letters: tuple[DeadLetterRef, ...]
    seconds: float
    error: TaskError | None = None


@dataclass(frozen=True)
class RangeWritten:
    """What one task of the second stage wrote for a topic's range."""

    topic: str
    appended: Appended | None
    seconds: float
    error: TaskError | None = None


@dataclass
class TopicResult:
    """All answers about one topic, collected by the driver."""

    topic: str
    reads: list[TopicRead] = field(default_factory=list)
    writes: list[RangeWritten] = field(default_factory=list)

    @property
    def errors(self) -> list[TaskError]:
        """The errors of the topic's tasks; empty if all went well."""
        answers: list[TopicRead | RangeWritten] = [*self.reads, *self.writes]
        return [answer.error for answer in answers if answer.error]

    @property
    def reports(self) -> list[PartitionReport]:
        """The reports of all its partitions that had records."""
        return [report for read in self.reads for report in read.reports]

    def contribution(self, planned_on: int, starts: Offsets, ends: Offsets) -> CommitContribution:
        """Return the answers of a batch for the offsets `starts` to `ends`, to be committed;
        `planned_on` is the table's version that its tasks were given.
        """
        appended = [write.appended for write in self.writes if write.appended]
        letters = [letter for read in self.reads for letter in read.dead_letters]
        return CommitContribution(planned_on, starts, ends, self.reports, appended, letters)


def gather(answers: Iterable[TopicRead | RangeWritten]) -> dict[str, TopicResult]:
    """Collect the answers of all tasks by topic."""
    results: dict[str, TopicResult] = {}
    for answer in answers:
        result = results.setdefault(answer.topic, TopicResult(answer.topic))
        if isinstance(answer, TopicRead):
            result.reads.append(answer)
        else:
            result.writes.append(answer)
    return results
