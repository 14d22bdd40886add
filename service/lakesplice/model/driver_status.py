"""What a driver reports about every topic that its configuration matches, for operators, and how
old the views of a table may become.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from lakesplice.model.moments import EpochMs

LEASE_SECONDS = 10.0
"""How long a driver has its lake after its last heartbeat, if no setting says otherwise."""
LEASE_SECONDS_MAX = 600.0


class TopicState(StrEnum):
    """The present state of a topic.

    `RUNNING`: its records are read and committed. `WAITING`: it has no table yet, since none of its
    records is committed. `RESTING`: the last attempt failed for a reason that may pass, and is
    retried after a pause. `PARKED`: an operator has to decide. `REFUSED`: the configuration or the
    topic's name has to change. `EXCLUDED`: the configuration leaves it out.
    """

    RUNNING = "running"
    WAITING = "waiting"
    RESTING = "resting"
    PARKED = "parked"
    REFUSED = "refused"
    EXCLUDED = "excluded"


TROUBLES = (TopicState.RESTING, TopicState.PARKED, TopicState.REFUSED)
WORST_FIRST = (
    TopicState.PARKED,
    TopicState.REFUSED,
    TopicState.RESTING,
    TopicState.WAITING,
    TopicState.RUNNING,
    TopicState.EXCLUDED,
)
"""A table shows the state of its worst topic; the worst state comes first here."""
FED_BY_HAND, UNREAD = "by hand", "unread"
"""The states of a table that no topic of the driver feeds: programs write it, or nobody does."""
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class FreshnessGoal:
    """The freshness goals of both views: the largest age, in seconds, that each should have."""

    real_time: float
    read_optimised: float

    def lateness(self, real_time: float | None, read_optimised: float | None) -> float | None:
        """Return the larger quotient of a view's age and its goal: above 1 the table is late. An
        unknown age is None; the result is None if both are.
        """
        ages = ((real_time, self.real_time), (read_optimised, self.read_optimised))
        return max((age / goal for age, goal in ages if age is not None), default=None)


def strictest(goals: Iterable[FreshnessGoal]) -> FreshnessGoal | None:
    """Return the goal of a table whose topics have these goals; None if there are none."""
    found = list(goals)
    if not found:
        return None
    return FreshnessGoal(
        min(goal.real_time for goal in found), min(goal.read_optimised for goal in found)
    )


@dataclass(frozen=True, slots=True)
class TopicCondition:
    """A topic's state and the reason: `code` is the `ParkCode` of a parked one, `reason` is for
    people, `retry_ms` is when a resting one is retried.
    """

    state: TopicState
    reason: str = ""
    code: str = ""
    retry_ms: EpochMs | None = None


@dataclass(frozen=True, slots=True)
class SuspectSetting:
    """A setting of a connector that changes values, as events show: `detail` says what it does and
    what to do, `seen_ms` when such an event was last read.
    """

    name: str
    detail: str
    seen_ms: EpochMs


@dataclass(frozen=True, slots=True)
class MissingChanges:
    """What compactions of a table found missing: `changes` didn't find their row as their before
    image shows it, so changes before them are probably missing in the topic. `seen_ms` is when the
    last of them was found; a day later they are no longer counted.
    """

    changes: int
    seen_ms: EpochMs

    def is_recent(self, now_ms: EpochMs) -> bool:
        """Whether the last one was found within a day."""
        return now_ms - self.seen_ms < _DAY_MS


class MirrorCondition(StrEnum):
    """Whether an Iceberg mirror follows its table: it lacks nothing (`CURRENT`), lacks something
    that the next attempt will bring (`BEHIND`), or the last attempt failed (`FAILING`).
    """

    CURRENT = "current"
    BEHIND = "behind"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """A table's Iceberg mirror. `version` is the newest version of the table whose base files and
    columns it shows; None until that is known. `behind_since_ms` is when something was first
    lacking, `failure` why the last attempt failed, and `retry_ms` when the next one is made.
    """

    version: int | None
    behind_since_ms: EpochMs | None = None
    failure: str = ""
    retry_ms: EpochMs | None = None

    @property
    def condition(self) -> MirrorCondition:
        """Whether it follows."""
        if self.failure:
            return MirrorCondition.FAILING
        is_current = self.version is not None and self.behind_since_ms is None
        return MirrorCondition.CURRENT if is_current else MirrorCondition.BEHIND


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic, and the table of the lake (`database.table`) that it feeds; empty if it feeds
    none.

    `since_ms` is when the state began, also before a restart of the driver. `lag_records` are the
    records that aren't committed yet. `real_time_ms` and `read_optimised_ms` are the moments up to
    which the views are known to be complete. None stands for unknown. `goal` is the freshness goal;
    older drivers don't report it. `suspect_settings`, each once and in order of name, were shown by
    events of the last day. `mirror` is the table's Iceberg mirror, if it has one;
    `missing_changes` are those that compactions of the table found missing, if any were found
    within a day.
    """

    topic: str
    table: str
    standing: TopicCondition
    since_ms: EpochMs
    lag_records: int | None = None
    real_time_ms: EpochMs | None = None
    read_optimised_ms: EpochMs | None = None
    suspect_settings: tuple[SuspectSetting, ...] = ()
    goal: FreshnessGoal | None = None
    mirror: MirrorStatus | None = None
    missing_changes: MissingChanges | None = None


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """All topics that match `pattern`, in order of name, as the driver of a generation saw them.

    `running` is False in the last document of a driver that ended in order. `other_topics` are some
    topics of the broker, only if none matches.
    """

    generation: int
    written_ms: EpochMs
    running: bool
    pattern: str
    topics: tuple[TopicStatus, ...] = ()
    other_topics: tuple[str, ...] = ()

    def topics_by_state(self) -> Counter[TopicState]:
        """Return how many topics are in each state; one that feeds a history table, too, counts
        once, in the worse of the two.
        """
        worst: dict[str, TopicState] = {}
        for one in self.topics:
            state = one.standing.state
            worst[one.topic] = min(worst.get(one.topic, state), state, key=WORST_FIRST.index)
        return Counter(worst.values())

    def complete_until(self, tables: Collection[str]) -> EpochMs | None:
        """Return the latest moment up to which the real-time views of all these tables are
        complete, by the times of their sources; None if it is unknown for one of them, or no topic
        feeds any.
        """
        topics = [one for one in self.topics if one.table in tables]
        read = [one for one in topics if one.standing.state is not TopicState.EXCLUDED]
        known = [one.real_time_ms for one in read if one.real_time_ms is not None]
        return min(known) if known and len(known) == len(read) else None
