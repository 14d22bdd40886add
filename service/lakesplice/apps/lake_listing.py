"""The tables of a lake and the state of each, from its manifest and the driver's status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lakesplice.apps.lake import table_names
from lakesplice.errors import LakespliceError, TableNotFoundError
from lakesplice.model.driver_status import (
    FED_BY_HAND,
    UNREAD,
    WORST_FIRST,
    DriverStatus,
    TopicState,
    TopicStatus,
    strictest,
)
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs, seconds_since, utc_time
from lakesplice.model.names import IS_DELETED, TableName
from lakesplice.model.parking import ParkReason
from lakesplice.model.progress.verified import LastResult
from lakesplice.storage.stores import AnyStore
from lakesplice.table.driver.last_results import last_results, worst_by_folder
from lakesplice.table.protocol.offsets import gap_names
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot
from lakesplice.table.reading.scan import ScanRequest, scan

_THREADS = 8
# Rows are counted by reading one small column of every file. Beyond this that takes too long for a
# first look, and only the upper bound is shown.
_FILES_COUNTED_MAX = 256
_ROWS_COUNTED_MAX = 50_000_000
UNREADABLE = "unreadable"

Row = dict[str, Any]
Parkings = dict[str | None, ParkReason]
RowCount = Callable[[Store, Snapshot], int | None]
"""The number of rows that a reader of a version gets; None if they aren't counted."""


def listing(
    lake: AnyStore,
    status: DriverStatus | None,
    now_ms: EpochMs,
    count: RowCount | None = None,
) -> list[Row]:
    """Return a row for each table of the lake, and for each topic that has none, in order of name.

    `rows` are those that a reader of the real-time view gets; None if they are too many to be
    counted, which `count` decides (by default `live_rows`). `physical_rows` are those in base
    files, with deleted ones. Blocks on the store.
    """
    topics: dict[str, list[TopicStatus]] = defaultdict(list)
    for topic in () if status is None else status.topics:
        topics[topic.table].append(topic)
    names = {str(name): name for name in table_names(lake)}
    verified = worst_by_folder(last_results(lake))
    shown = sorted({*names, *topics} - {""})

    def row(table: str) -> Row:
        details = _table_details(lake, names[table], count or live_rows) if table in names else {}
        by_hand = details.pop("by_hand", False)
        if not topics.get(table) and not details.get("parked"):
            details = _without_topic(status, by_hand=by_hand) | details
        if table in names and names[table].path in verified:
            details["verified"] = _verified(verified[names[table].path])
        return _row(table, details, topics.get(table, []), now_ms)

    with ThreadPoolExecutor(_THREADS, "listing") as pool:
        rows = list(pool.map(row, shown))
    return rows + [_row("", {}, [topic], now_ms) for topic in topics.get("", [])]


def moment(timestamp_ms: EpochMs | None) -> str | None:
    """Return a moment as text in ISO 8601; None if there is none."""
    if not timestamp_ms:
        return None
    return utc_time(timestamp_ms).isoformat(timespec="milliseconds")


def _row(table: str, details: Row, topics: Sequence[TopicStatus], now_ms: EpochMs) -> Row:
    parked = details.pop("parked", {})
    topic_rows = [_of_topic(topic, parked, now_ms) for topic in topics]
    known = {one["topic"] for one in topic_rows}
    for topic, why in parked.items():
        if topic not in known and (topic is not None or not topic_rows):
            topic_rows.append({"topic": why.topic, "state": TopicState.PARKED.value, **_why(why)})
    topic_rows.sort(key=lambda one: (WORST_FIRST.index(TopicState(one["state"])), one["topic"]))
    worst = topic_rows[0] if topic_rows else {"topic": None, "state": TopicState.RUNNING.value}
    suspect = [one for topic in topic_rows for one in topic.get("suspect_settings", ())]
    goal = strictest(topic.goal for topic in topics if topic.goal is not None)
    real_time, read_optimised = (
        _oldest(topic_rows, name) for name in ("freshness_seconds", "read_optimised_seconds")
    )
    lags = [one["lag"] for one in topic_rows if one.get("lag") is not None]
    return {
        "table": table or None,
        **worst,
        "lag": sum(lags) if lags else None,
        "freshness_seconds": real_time,
        "read_optimised_seconds": read_optimised,
        "freshness_goal_seconds": None if goal is None else goal.real_time,
        "read_optimised_goal_seconds": None if goal is None else goal.read_optimised,
        "lateness": None if goal is None else goal.lateness(real_time, read_optimised),
        "suspect_settings": list({one["name"]: one for one in suspect}.values()),
        "verified": None,
        "mirror": _mirror(topics, now_ms),
        "missing_changes": _missing(topics),
        **details,
        "topics": topic_rows,
    }


def _of_topic(topic: TopicStatus, parked: Parkings, now_ms: EpochMs) -> Row:
    """A topic as its driver reported it; but whether it is parked is taken from the manifest."""
    standing, why = topic.standing, parked.get(topic.topic, parked.get(None))
    row: Row = {"topic": topic.topic, "state": standing.state.value}
    if why is not None:
        row |= {"state": TopicState.PARKED.value, **_why(why)}
    elif standing.state is TopicState.PARKED and topic.table and standing.code != "fed-by-hand":
        row["state"] = TopicState.RUNNING.value
    elif standing.reason:
        row |= {"code": standing.code or None, "detail": standing.reason}
    if standing.retry_ms is not None and row["state"] == standing.state.value:
        row["retry"] = moment(standing.retry_ms)
    return row | {
        "since": moment(topic.since_ms),
        "lag": topic.lag_records,
        "freshness_seconds": seconds_since(topic.real_time_ms, now_ms),
        "read_optimised_seconds": seconds_since(topic.read_optimised_ms, now_ms),
        "suspect_settings": [
            {"name": one.name, "detail": one.detail, "seen": moment(one.seen_ms)}
            for one in topic.suspect_settings
        ],
    }


def _missing(topics: Sequence[TopicStatus]) -> Row | None:
    """What compactions of the last day found missing in the topics of a table."""
    found = next((one.missing_changes for one in topics if one.missing_changes is not None), None)
    if found is None:
        return None
    return {"changes": found.changes, "seen": moment(found.seen_ms)}


def _without_topic(status: DriverStatus | None, *, by_hand: bool) -> Row:
    """The state of a table that no topic of the driver feeds."""
    if by_hand:
        return {"state": FED_BY_HAND}
    if status is None:
        return {}
    return {"state": UNREAD, "detail": "no topic that the service knows feeds the table"}


def _verified(result: LastResult) -> Row:
    return {
        "outcome": result.outcome.value,
        "reason": result.reason,
        "ended": moment(result.ended_ms),
        "different": result.different,
        "unsettled": result.unsettled,
        "share": result.share,
    }


def _mirror(topics: Sequence[TopicStatus], now_ms: EpochMs) -> Row | None:
    """A table's Iceberg mirror as its driver reported it."""
    mirror = next((one.mirror for one in topics if one.mirror is not None), None)
    if mirror is None:
        return None
    return {
        "state": mirror.condition.value,
        "version": mirror.version,
        "behind_seconds": seconds_since(mirror.behind_since_ms, now_ms),
        "failure": mirror.failure,
        "retry": moment(mirror.retry_ms),
    }


def _why(parked: ParkReason) -> Row:
    """Why a topic is parked, and the record at which it stopped, if there is one."""
    record = {"record": f"{parked.partition}:{parked.offset}"} if parked.partition >= 0 else {}
    return {"code": parked.code.value, "detail": parked.detail, **record}


def _oldest(topic_rows: Iterable[Row], name: str) -> float | None:
    ages = [one.get(name) for one in topic_rows]
    known = [age for age in ages if age is not None]
    return max(known) if known and len(known) == len(ages) else None


def _table_details(lake: AnyStore, name: TableName, count: RowCount) -> Row:
    store = lake.within(name.path)
    try:
        snapshot = open_snapshot(store)
        rows = count(store, snapshot)
    except TableNotFoundError:
        return {}  # its first version isn't written yet
    except LakespliceError as error:
        return {"state": UNREADABLE, "detail": str(error)}
    manifest = snapshot.manifest
    return {
        "version": snapshot.version,
        "rows": rows,
        "physical_rows": manifest.stored_rows,
        "base_files": len(manifest.files),
        "deltas": len(manifest.deltas),
        "waiting": sum(sum(delta.waiting.values()) for delta in manifest.deltas),
        "delta_bytes": sum(delta.file.bytes for delta in manifest.deltas),
        "index_runs": len(manifest.runs),
        "dead": sum(letters.rows for letters in manifest.dead_letters),
        "gaps": gap_names(manifest),
        "committed": moment(snapshot.timestamp_ms),
        "parked": _parked(manifest),
        "by_hand": manifest.is_fed_by_hand,
    }


def _parked(manifest: Manifest) -> Parkings:
    """Why topics are parked, by topic; None stands for all topics of the table."""
    if manifest.parked is not None:
        return {None: manifest.parked}
    return {parked.topic: parked for parked in manifest.parkings}


def uncounted(_store: Store, _snapshot: Snapshot) -> None:
    """Leave a table's rows uncounted, for a quick look."""


def live_rows(store: Store, snapshot: Snapshot) -> int | None:
    """Return how many rows a reader gets, None if they are too many to be counted."""
    manifest = snapshot.manifest
    if len(manifest.files) > _FILES_COUNTED_MAX or manifest.stored_rows > _ROWS_COUNTED_MAX:
        return None
    counts = [int(part.num_rows) for part in scan(store, manifest, ScanRequest((IS_DELETED,)))]
    return sum(counts)
