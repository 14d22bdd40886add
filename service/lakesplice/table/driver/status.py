"""The status document: what the lake's driver reports about its topics, for commands to show.

    _lakesplice/status/<generation>/<number>.json

Nothing depends on it: it is for people. Each document is a new file, as everything in a lake; the
driver deletes the one before, and those of earlier drivers. A driver that is killed leaves its last
one, which then becomes old.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from lakesplice.errors import MissingFileError
from lakesplice.model.driver_status import (
    DriverStatus,
    FreshnessGoal,
    MirrorStatus,
    MissingChanges,
    SuspectSetting,
    TopicCondition,
    TopicState,
    TopicStatus,
)
from lakesplice.model.moments import EpochMs
from lakesplice.table.driver.generation import newest_generation
from lakesplice.table.protocol.layout import STATUS, release_path, status_path
from lakesplice.table.protocol.ports import Store

_FORMAT = 1
# The document that was listed may be deleted by now: the driver replaced it.
_READS_MAX = 5


class StatusPublisher:
    """Publishes the status documents of one driver; used by one thread at a time."""

    def __init__(self, lake: Store, generation: int) -> None:
        self._lake = lake
        self._generation = generation
        self._number = 0

    def publish(self, status: DriverStatus) -> str:
        """Replace the lake's status document, and return its path. Blocks; `StorageError` as the
        store has it.
        """
        self._number += 1
        path = status_path(self._generation, self._number)
        self._lake.put_new(path, encode_status(status))
        if self._number > 1:
            self._lake.delete(status_path(self._generation, self._number - 1))
            return path
        for older in self._lake.list(f"{STATUS}/"):
            if older < path:
                self._lake.delete(older)
        return path


def newest_status(lake: Store) -> DriverStatus | None:
    """Return what the newest driver published last; None if there is nothing that can be read."""
    for _ in range(_READS_MAX):
        path = max(lake.list(f"{STATUS}/"), default=None)
        if path is None:
            return None
        with suppress(MissingFileError):
            return decode_status(lake.read(path))
    return None


def unheard_driver(lake: Store, status: DriverStatus | None) -> int | None:
    """Return the generation of a driver that took the lake after the one that reported `status`,
    and didn't end in order; None if there is none. It starts, or can't write its status.
    """
    newest = newest_generation(lake)
    reported = 0 if status is None else status.generation
    return newest if newest > reported and lake.size(release_path(newest)) is None else None


def encode_status(status: DriverStatus) -> bytes:
    """Return the document's bytes."""
    return json.dumps({"format": _FORMAT, **asdict(status)}).encode()


def decode_status(data: bytes) -> DriverStatus | None:
    """Read a document; None if it has another format or isn't one. Fields of a newer driver are
    skipped.
    """
    try:
        document = json.loads(data)
        if document["format"] != _FORMAT:
            return None
        return DriverStatus(
            int(document["generation"]),
            EpochMs(int(document["written_ms"])),
            bool(document["running"]),
            str(document["pattern"]),
            tuple(_topic(topic) for topic in document["topics"]),
            tuple(map(str, document["other_topics"])),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _topic(document: Mapping[str, Any]) -> TopicStatus:
    standing = document["standing"]
    return TopicStatus(
        topic=str(document["topic"]),
        table=str(document["table"]),
        standing=TopicCondition(
            TopicState(standing["state"]),
            str(standing["reason"]),
            str(standing["code"]),
            _moment(standing["retry_ms"]),
        ),
        since_ms=EpochMs(int(document["since_ms"])),
        lag_records=_count(document["lag_records"]),
        real_time_ms=_moment(document["real_time_ms"]),
        read_optimised_ms=_moment(document["read_optimised_ms"]),
        # Older drivers don't write these fields.
        suspect_settings=tuple(map(_suspect, document.get("suspect_settings", ()))),
        goal=_goal(document.get("goal")),
        mirror=_mirror(document.get("mirror")),
        missing_changes=_missing(document.get("missing_changes")),
    )


def _suspect(document: Mapping[str, Any]) -> SuspectSetting:
    return SuspectSetting(
        str(document["name"]), str(document["detail"]), EpochMs(int(document["seen_ms"]))
    )


def _goal(document: Mapping[str, Any] | None) -> FreshnessGoal | None:
    if document is None:
        return None
    return FreshnessGoal(float(document["real_time"]), float(document["read_optimised"]))


def _mirror(document: Mapping[str, Any] | None) -> MirrorStatus | None:
    if document is None:
        return None
    return MirrorStatus(
        _count(document["version"]),
        _moment(document["behind_since_ms"]),
        str(document["failure"]),
        _moment(document["retry_ms"]),
    )


def _missing(document: Mapping[str, Any] | None) -> MissingChanges | None:
    if document is None:
        return None
    return MissingChanges(int(document["changes"]), EpochMs(int(document["seen_ms"])))


def _count(document: Any) -> int | None:
    return None if document is None else int(document)


def _moment(document: Any) -> EpochMs | None:
    count = _count(document)
    return None if count is None else EpochMs(count)
