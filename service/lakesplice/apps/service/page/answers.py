"""What the service answers under /api/v1: the types, from which its OpenAPI document is made.

Fields may be added; a change of what one means, or its end, makes another version of the paths.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lakesplice.model.driver_status import TopicState

Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class Answer(BaseModel):
    """Something that is answered."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SuspectSettingAnswer(Answer):
    """A setting of the connector that changes values, as the topic's events show."""

    name: str
    detail: str = Field(description="What it does, and what to do about it.")
    seen: datetime


class TopicAnswer(Answer):
    """A topic that the configuration matches, and what becomes of its records."""

    topic: str
    state: TopicState
    code: str = Field(description="The reason's code, of a parked topic; else empty.")
    reason: str = Field(description="Why it is in this state; may be empty for a running one.")
    since: datetime = Field(description="When the state began, over restarts of the service.")
    retry: datetime | None = Field(description="When a resting topic is tried again.")
    lag_records: Count | None = Field(description="Records of it that aren't committed yet.")
    suspect_settings: list[SuspectSettingAnswer]


class Waiting(Answer):
    """What waits for compaction."""

    deltas: Count = Field(description="Delta files.")
    changes: Count
    bytes: Count
    oldest_seconds: Seconds | None = Field(description="The age of the oldest; null if none waits.")


class TableAnswer(Answer):
    """A table, or a topic that has none: `table` is then null."""

    table: str | None = Field(description="`database.table`, by the source's names.")
    path: str | None = Field(description="Its folder in the lake, and its place below /tables.")
    topic: str = Field(description="Of the table's topics the one in the worst state.")
    state: TopicState = Field(description="That topic's.")
    code: str
    reason: str
    since: datetime
    retry: datetime | None
    topics: Count = Field(description="How many topics feed the table.")
    real_time_seconds: Seconds | None = Field(
        description="How old the real-time view may be; null until that is known."
    )
    read_optimised_seconds: Seconds | None = Field(
        description="How old the base files alone may be; null until that is known."
    )
    real_time_goal_seconds: Seconds | None = Field(
        description="How old the real-time view is to become at most; null for what has no table."
    )
    read_optimised_goal_seconds: Seconds | None = Field(
        description="How old the base files alone are to become at most."
    )
    lateness: Annotated[float, Field(ge=0)] | None = Field(
        description="The larger quotient of a view's age and its goal; above 1 the table is late."
    )
    lag_records: Count | None
    changes_per_second: Annotated[float, Field(ge=0)] | None = Field(
        description="Committed lately: in a minute, or in two times the trigger if that is longer."
    )
    rows: Count | None = Field(description="Rows in base files, deleted ones included.")
    base_files: Count | None
    version: Count | None = Field(description="Null until the table's first version.")
    committed: datetime | None = Field(description="When the version was committed.")
    waiting: Waiting | None
    dead_letters: Count | None = Field(description="Neither replayed nor dropped.")
    compaction: Literal["", "compaction", "upkeep", "failing"] = Field(
        description="What is done to it now, or that its last compaction failed."
    )
    compaction_failure: str = Field(description="Why its last compaction failed; else empty.")
    suspect_settings: Count = Field(description="How many settings change its values.")


class WorkAnswer(Answer):
    """What a thread of the compactor does now."""

    table: str
    what: Literal["compaction", "upkeep"]
    since: datetime
    changes: Count = Field(description="Changes that waited in the table when it began.")
    bytes: Count


class BatchAnswer(Answer):
    """A batch that ended; of a failed one it isn't known how much it had."""

    began: datetime
    seconds: Seconds
    records: Count | None
    tables: Count | None
    result: Literal["ok", "partial", "failed"]


class LakeAnswer(Answer):
    """The service and its lake as a whole."""

    version: str = Field(description="Of Lakesplice.")
    moment: datetime = Field(description="When this was so.")
    lake: str = Field(description="Where the lake is.")
    drives: bool = Field(description="False while it starts, waits for another driver, or ends.")
    waits_for: dict[str, str] = Field(description="What it is unready for, and why.")
    generation: Count | None = Field(description="Of this driver in the lake.")
    topic_pattern: str
    topics: dict[TopicState, Count] = Field(description="How many topics are in each state.")
    other_topics: list[str] = Field(description="If no topic matches: some that the broker has.")
    lag_records: Count
    changes_per_second: Annotated[float, Field(ge=0)] | None
    waiting: Waiting
    dead_letters: Count
    work: list[WorkAnswer] = Field(description="What the compactor's threads do now.")
    batches: list[BatchAnswer] = Field(description="The last ones, the newest at the end.")


class TablesAnswer(Answer):
    """Tables, and topics that have none, sorted as asked."""

    tables: list[TableAnswer]
    all: Count = Field(description="How many there are without a search.")


class ColumnAnswer(Answer):
    """A column that readers see."""

    name: str = Field(description="As stored.")
    source_name: str = Field(description="At the source; empty if the source has it no more.")
    type: str = Field(description="As Delta Lake names it.")
    source_type: str
    key: Count | None = Field(description="Its place in the key; null for others.")
    partition: bool = Field(description="Whether files are kept apart by its values.")


class TableDetailAnswer(Answer):
    """A table with its topics and its schema."""

    table: TableAnswer
    topics: list[TopicAnswer]
    schema_version: Count
    columns: list[ColumnAnswer]


class SpliceAnswer(Answer):
    """What a compaction copied and what it encoded."""

    pages_copied: Count
    pages_encoded: Count
    bytes_copied: Count
    bytes_encoded: Count
    bytes_read: Count
    bytes_written: Count


class VersionAnswer(Answer):
    """A version of a table, as its commit tells of it."""

    version: Count
    time: datetime | None
    operation: str
    by: str = Field(description="Who asked for it, if a person did.")
    why: str
    sources: dict[str, dict[int, tuple[Count, Count]]] = Field(
        description="Per topic and partition: from which offset to which. An empty topic stands for"
        " the only one."
    )
    splice: SpliceAnswer | None = Field(description="Null for what is no compaction.")
    counts: dict[str, int] = Field(description="All that the commit counted.")


class HistoryAnswer(Answer):
    """Versions of a table, the newest first."""

    versions: list[VersionAnswer]
    before: Count | None = Field(description="Ask for those `before` this one next; null: no more.")


class ErrorAnswer(Answer):
    """Why there is no other answer."""

    error: str
