"""The state of tables and topics, as answers, from status values, snapshots and activity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakesplice.apps.service.activity import VERIFICATION, Activity, Failure
from lakesplice.apps.service.page.answers import (
    MirrorAnswer,
    MissingChangesAnswer,
    SuspectSettingAnswer,
    TableAnswer,
    TopicAnswer,
    VerifiedAnswer,
    Waiting,
)
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.model.driver_status import WORST_FIRST, TopicStatus, strictest
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs, seconds_since, utc_time
from lakesplice.model.progress.verified import LastResult
from lakesplice.secrets import masked_text
from lakesplice.table.protocol.offsets import gap_names


def table_answers(
    statuses: Iterable[TopicStatus],
    held: Mapping[str, ServiceTable],
    activity: Activity,
    now_ms: EpochMs,
) -> tuple[TableAnswer, ...]:
    """Return a row for each table, in order of name, and one for each topic without a table; `held`
    are the driver's tables by name.
    """
    by_table: dict[str, list[TopicStatus]] = defaultdict(list)
    for topic in statuses:
        by_table[topic.table].append(topic)
    work = {one.table: one.what for one in activity.work if one.what != VERIFICATION}
    failures, verified = activity.failures, activity.verified
    alone = by_table.pop("", [])
    rows = []
    for name, topics in sorted(by_table.items()):
        table = held.get(name)
        facts = {} if table is None else _table_fields(table, now_ms)
        if table is not None and table.name.path in verified:
            facts["verified"] = _verified(verified[table.name.path])
        rows.append(
            _row(name, topics, now_ms, facts | _compaction(work.get(name), failures.get(name)))
        )
    return (*rows, *(_row(None, [topic], now_ms, _compaction(None, None)) for topic in alone))


def _row(
    name: str | None, topics: Sequence[TopicStatus], now_ms: EpochMs, facts: dict[str, Any]
) -> TableAnswer:
    worst = min(topics, key=severity)
    lags = [topic.lag_records for topic in topics if topic.lag_records is not None]
    settings = {setting.name for topic in topics for setting in topic.suspect_settings}
    real_time = _oldest([one.real_time_ms for one in topics], now_ms)
    read_optimised = _oldest([one.read_optimised_ms for one in topics], now_ms)
    goal = strictest(topic.goal for topic in topics if topic.goal is not None)
    return TableAnswer.model_validate(
        {
            "table": name,
            "topics": len(topics),
            **_standing(worst),
            "real_time_seconds": real_time,
            "read_optimised_seconds": read_optimised,
            "real_time_goal_seconds": None if goal is None else goal.real_time,
            "read_optimised_goal_seconds": None if goal is None else goal.read_optimised,
            "lateness": None if goal is None else goal.lateness(real_time, read_optimised),
            "lag_records": sum(lags) if lags else None,
            "suspect_settings": len(settings),
            "mirror": _mirror(topics, now_ms),
            "missing_changes": _missing(topics),
            **_NO_FACTS,
            **facts,
        }
    )


_NO_FACTS: dict[str, Any] = {"gaps": []} | dict.fromkeys(
    ("path", "changes_per_second", "rows", "base_files", "version", "committed", "waiting",
     "dead_letters", "verified")
)  # fmt: skip


def _table_fields(table: ServiceTable, now_ms: EpochMs) -> dict[str, Any]:
    manifest, snapshot = table.manifest, table.snapshot
    made = {} if snapshot is None else {
        "version": snapshot.version,
        "committed": utc_time(snapshot.timestamp_ms),
    }  # fmt: skip
    return {
        "path": table.name.path,
        "changes_per_second": table.changes_per_second,
        "rows": manifest.stored_rows,
        "base_files": len(manifest.files),
        "waiting": _waiting(manifest, now_ms),
        "dead_letters": sum(letters.rows for letters in manifest.dead_letters),
        "gaps": gap_names(manifest),
        **made,
    }


def _verified(result: LastResult) -> VerifiedAnswer:
    return VerifiedAnswer(
        outcome=result.outcome,
        reason=masked_text(result.reason),
        ended=utc_time(result.ended_ms),
        rows=result.rows,
        different=result.different,
        unsettled=result.unsettled,
        share=result.share,
    )


def _mirror(topics: Sequence[TopicStatus], now_ms: EpochMs) -> MirrorAnswer | None:
    mirror = next((one.mirror for one in topics if one.mirror is not None), None)
    if mirror is None:
        return None
    return MirrorAnswer(
        state=mirror.condition,
        version=mirror.version,
        behind_seconds=seconds_since(mirror.behind_since_ms, now_ms),
        failure=mirror.failure,
        retry=None if mirror.retry_ms is None else utc_time(mirror.retry_ms),
    )


def _missing(topics: Sequence[TopicStatus]) -> MissingChangesAnswer | None:
    found = next((one.missing_changes for one in topics if one.missing_changes is not None), None)
    if found is None:
        return None
    return MissingChangesAnswer(changes=found.changes, seen=utc_time(found.seen_ms))


def _waiting(manifest: Manifest, now_ms: EpochMs) -> Waiting:
    deltas = manifest.deltas
    oldest = min((delta.committed_ms for delta in deltas), default=None)
    return Waiting(
        deltas=len(deltas),
        changes=sum(sum(delta.waiting.values()) for delta in deltas),
        bytes=sum(delta.file.bytes for delta in deltas),
        oldest_seconds=seconds_since(oldest, now_ms),
    )


def sum_up(waiting: Iterable[Waiting]) -> Waiting:
    """Return the sum of what waits in several tables."""
    found = list(waiting)
    ages = [one.oldest_seconds for one in found if one.oldest_seconds is not None]
    return Waiting(
        deltas=sum(one.deltas for one in found),
        changes=sum(one.changes for one in found),
        bytes=sum(one.bytes for one in found),
        oldest_seconds=max(ages, default=None),
    )


def _compaction(work: str | None, failure: Failure | None) -> dict[str, Any]:
    return {
        "compaction": work or ("" if failure is None else "failing"),
        "compaction_failure": "" if failure is None else masked_text(failure.reason),
    }


def _standing(topic: TopicStatus) -> dict[str, Any]:
    standing = topic.standing
    return {
        "topic": topic.topic,
        "state": standing.state,
        "code": standing.code,
        "reason": masked_text(standing.reason),
        "since": utc_time(topic.since_ms),
        "retry": None if standing.retry_ms is None else utc_time(standing.retry_ms),
    }


def topic_answer(topic: TopicStatus) -> TopicAnswer:
    """Return the state of a topic."""
    settings = [
        SuspectSettingAnswer(name=one.name, detail=one.detail, seen=utc_time(one.seen_ms))
        for one in topic.suspect_settings
    ]
    return TopicAnswer.model_validate(
        {
            **_standing(topic),
            "lag_records": topic.lag_records,
            "suspect_settings": settings,
        }
    )


def severity(topic: TopicStatus) -> tuple[int, str]:
    """Return a sort key by which the topic in the worst state comes first."""
    return WORST_FIRST.index(topic.standing.state), topic.topic


def _oldest(moments: Sequence[EpochMs | None], now_ms: EpochMs) -> float | None:
    """The largest age; None if any is unknown."""
    known = [moment for moment in moments if moment is not None]
    return seconds_since(min(known), now_ms) if known and len(known) == len(moments) else None
