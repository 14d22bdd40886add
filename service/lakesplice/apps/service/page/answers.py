"""The types of the answers under /api/v1; the OpenAPI document is made from them.

Fields may be added. If the meaning of a field changes, or a field is removed, the paths get a new
version.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lakesplice.model.driver_status import MirrorCondition, TopicState
from lakesplice.model.progress.verified import ComparisonOutcome

Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Answer(BaseModel):
    """The base of all answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SuspectSettingAnswer(Answer):
    """A setting of the connector that changes values, as the topic's events show."""

    name: str
    detail: str = Field(description="What it does, and what to do about it.")
    seen: datetime


class TopicAnswer(Answer):
    """A topic that the configuration matches, and its state."""

    topic: str
    state: TopicState
    code: str = Field(description="The reason's code if the topic is parked; otherwise empty.")
    reason: str = Field(description="Why it is in this state; may be empty for a running one.")
    since: datetime = Field(
        description="When the state began; a restart of the service doesn't change it."
    )
    retry: datetime | None = Field(description="When a resting topic is retried.")
    lag_records: Count | None = Field(description="How many of its records aren't committed yet.")
    suspect_settings: list[SuspectSettingAnswer]


class Waiting(Answer):
    """The changes that wait for compaction."""

    deltas: Count = Field(description="Delta files.")
    changes: Count
    bytes: Count
    oldest_seconds: Seconds | None = Field(description="The age of the oldest; null if none waits.")


class VerifiedAnswer(Answer):
    """The last comparison of a table with its database; of several topics the worst."""

    outcome: ComparisonOutcome
    reason: str = Field(description="Why it couldn't be compared; otherwise empty.")
    ended: datetime
    rows: Count = Field(description="Rows that the database had.")
    different: Count = Field(description="Rows that were proven to differ.")
    unsettled: Count = Field(description="Rows of which it isn't known whether they differ.")
    share: Annotated[float, Field(gt=0, le=1)] = Field(
        description="The part of the rows that was compared."
    )


class MirrorAnswer(Answer):
    """The Iceberg mirror of a table."""

    state: MirrorCondition
    version: Count | None = Field(
        description="The newest version of the table that it shows; null until that is known."
    )
    behind_seconds: Seconds | None = Field(
        description="Since when it lacks something; null if it lacks nothing."
    )
    failure: str = Field(description="Why the last attempt failed; otherwise empty.")
    retry: datetime | None = Field(description="When the next attempt is made after a failure.")


class MissingChangesAnswer(Answer):
    """Changes that are missing in the topics of a table: compactions found rows that weren't as the
    next change's before image shows them.
    """

    changes: Count = Field(description="Changes before which something is missing.")
    seen: datetime = Field(description="When the last of them was found.")


class TableAnswer(Answer):
    """A table, or a topic that has none: `table` is then null."""

    table: str | None = Field(description="`database.table`, by the source's names.")
    path: str | None = Field(description="Its folder in the lake, and its path below /tables.")
    topic: str = Field(description="The topic of the table that is in the worst state.")
    state: TopicState = Field(description="That topic's.")
    code: str
    reason: str
    since: datetime
    retry: datetime | None
    topics: Count = Field(description="How many topics feed the table.")
    real_time_seconds: Seconds | None = Field(
        description="How old the real-time view may be; null until that is known, which is after"
        " the table's first batch."
    )
    read_optimised_seconds: Seconds | None = Field(
        description="How old the base files alone may be; null as the real-time view's age."
    )
    real_time_goal_seconds: Seconds | None = Field(
        description="The freshness goal of the real-time view; null for a topic without a table."
    )
    read_optimised_goal_seconds: Seconds | None = Field(
        description="The freshness goal of the base files alone."
    )
    lateness: Annotated[float, Field(ge=0)] | None = Field(
        description="A view's age divided by its freshness goal, the larger one; late above 1."
    )
    lag_records: Count | None
    changes_per_second: Annotated[float, Field(ge=0)] | None = Field(
        description="Committed within a minute, or within twice the trigger if that is longer."
    )
    rows: Count | None = Field(description="Rows in base files, deleted ones included.")
    base_files: Count | None
    version: Count | None = Field(description="Null until the table's first version.")
    committed: datetime | None = Field(description="When the version was committed.")
    waiting: Waiting | None
    dead_letters: Count | None = Field(
        description="Dead letters that were neither replayed nor dropped."
    )
    gaps: list[str] = Field(
        description="Records that were passed over and not read since: `partition:start-end`, after"
        " the topic's name if several feed the table. The end is left out if it isn't known."
    )
    compaction: Literal["", "compaction", "upkeep", "failing"] = Field(
        description="What is being done to the table, or that its last compaction failed."
    )
    compaction_failure: str = Field(description="Why its last compaction failed; otherwise empty.")
    verified: VerifiedAnswer | None = Field(
        description="How it compared with its database; null if it never was compared."
    )
    mirror: MirrorAnswer | None = Field(
        description="Its Iceberg mirror; null if it has none (`also: [iceberg]`)."
    )
    missing_changes: MissingChangesAnswer | None = Field(
        description="What is missing in its topics; null if nothing was found missing for a day."
    )
    suspect_settings: Count = Field(
        description="How many settings of the connector change its values."
    )


class WorkAnswer(Answer):
    """What a thread of the service does to a table now."""

    table: str
    what: Literal["compaction", "upkeep", "verification"]
    since: datetime
    changes: Count = Field(description="Changes that waited in the table when it began.")
    bytes: Count


class BatchAnswer(Answer):
    """A batch that ended. The numbers of a failed batch are unknown."""

    began: datetime
    seconds: Seconds
    records: Count | None
    tables: Count | None
    result: Literal["ok", "partial", "failed"]


class ConnectorAnswer(Answer):
    """What writes topics that begin with the same name."""

    connector: str
    has_heartbeats: bool
    wrote: datetime = Field(description="When its newest record was written.")
    age_seconds: Seconds
    is_silent: bool = Field(
        description="Whether it sends heartbeats, and none has come for two minutes."
    )


class LakeAnswer(Answer):
    """The service and its lake as a whole."""

    version: str = Field(description="Of Lakesplice.")
    moment: datetime = Field(description="The moment of this answer.")
    lake: str = Field(description="Where the lake is.")
    drives: bool = Field(description="False while it starts, waits for another driver, or ends.")
    waits_for: dict[str, str] = Field(description="Why it is not ready.")
    generation: Count | None = Field(description="The generation of this driver in the lake.")
    topic_pattern: str
    topics: dict[TopicState, Count] = Field(description="How many topics are in each state.")
    other_topics: list[str] = Field(description="If no topic matches: some that the broker has.")
    lag_records: Count
    changes_per_second: Annotated[float, Field(ge=0)] | None
    waiting: Waiting
    dead_letters: Count
    work: list[WorkAnswer] = Field(description="What threads do to tables now.")
    batches: list[BatchAnswer] = Field(description="The last ones, the newest at the end.")
    batch_age_seconds: Seconds | None = Field(
        description="Since a batch last ended, there was nothing to read, or this driver began;"
        " null before it drives."
    )
    is_batch_overdue: bool = Field(
        description="Whether that is longer ago than three triggers, and three minutes."
    )
    clock_difference_seconds: float | None = Field(
        description="How far the store's clock is ahead of the service's; below 0 it is behind."
    )
    is_clock_wrong: bool = Field(description="Whether the clocks differ by more than a minute.")
    query_failure: str = Field(description="Why no batch can run now; otherwise empty.")
    connectors: list[ConnectorAnswer] = Field(
        description="As far as the broker says, by name; empty before topics were read."
    )


class TablesAnswer(Answer):
    """Tables, and topics without a table, sorted as requested."""

    tables: list[TableAnswer]
    all: Count = Field(description="How many there are without the search.")


class ColumnAnswer(Answer):
    """A column that readers see."""

    name: str = Field(description="As stored.")
    source_name: str = Field(
        description="The name at the source; empty if the source no longer has the column."
    )
    type: str = Field(description="The type, as Delta Lake names it.")
    source_type: str
    key: Count | None = Field(
        description="Its position in the key, from 1; null if it isn't in the key."
    )
    partition: bool = Field(description="Whether the table is partitioned by it.")


class TableDetailAnswer(Answer):
    """A table with its topics and its schema."""

    table: TableAnswer
    topics: list[TopicAnswer]
    schema_version: Count
    columns: list[ColumnAnswer]


class SpliceAnswer(Answer):
    """How much a compaction copied and encoded."""

    pages_copied: Count
    pages_encoded: Count
    bytes_copied: Count
    bytes_encoded: Count
    bytes_read: Count
    bytes_written: Count


class VersionAnswer(Answer):
    """A version of a table, as its commit describes it."""

    version: Count
    time: datetime | None
    operation: str
    by: str = Field(description="Who requested the version, if a command did.")
    why: str
    gaps: str | None = Field(
        description="The records that were passed over and not read since; only if they changed "
        "with the version."
    )
    sources: dict[str, dict[int, tuple[Count, Count]]] = Field(
        description="For each topic and partition the first and the next offset. An empty name "
        "stands for the only topic."
    )
    splice: SpliceAnswer | None = Field(description="Null unless the version is a compaction.")
    counts: dict[str, int] = Field(description="All counts of the commit.")


class HistoryAnswer(Answer):
    """Versions of a table, the newest first."""

    versions: list[VersionAnswer]
    before: Count | None = Field(
        description="To get the next versions, request with `before` set to this; null if there "
        "are no more."
    )


class ErrorAnswer(Answer):
    """Why a request failed."""

    error: str
