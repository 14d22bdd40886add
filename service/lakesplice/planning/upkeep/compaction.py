"""Compaction plans: which tables are due, which one is next, and when ingest has to wait for them.

A table is due as soon as one reason is enough (`Pressure.score` of 1 or more):

    deltas   every reader opens each waiting delta
    bytes    every reader decodes each waiting delta
    age      the read-optimised view must not stay old for ever
    ratio    waiting changes per row of the table: above some share a rewrite costs the same anyway
    pages    changes per page that they are expected to change: many changes on few pages make a
             cheap splice, so a hot spot need not wait for the rest of the table
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs

_NO_ROWS = 1


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """What makes a table due. Each bound is the value at which that reason alone is enough.

    `age_seconds_max` is counted from the oldest waiting delta, `bytes_max` over all of them.
    `ratio_max` is the number of waiting changes per row of the table, `changes_per_page_min` that
    per changed page.
    """

    deltas_max: int = 20
    bytes_max: int = 128 * 1024 * 1024
    age_seconds_max: float = 1800.0
    ratio_max: float = 0.1
    changes_per_page_min: float = 200.0
    rows_per_page: int = 4096

    def due_by(self, deltas_max: int) -> CompactionPolicy:
        """Return the policy under which a table is due with this many deltas at the latest.

        A table whose ingest waits for compaction must be due, or it would wait until its changes
        are old.
        """
        return replace(self, deltas_max=min(self.deltas_max, deltas_max))


@dataclass(frozen=True, slots=True)
class TableBacklog:
    """What waits in a table. `bytes` counts each delta's waiting share, `pages` is an estimate."""

    deltas: int = 0
    changes: int = 0
    bytes: int = 0
    rows: int = 0
    pages: float = 0.0
    oldest_ms: EpochMs | None = None


@dataclass(frozen=True, slots=True)
class Pressure:
    """How close each reason for a compaction is; 1 means that it is enough."""

    deltas: float
    bytes: float
    age: float
    ratio: float
    pages: float

    @property
    def score(self) -> float:
        """The strongest reason; the table is due from 1 on."""
        return max(self.deltas, self.bytes, self.age, self.ratio, self.pages)

    @property
    def reason(self) -> str:
        """The name of the strongest reason."""
        weights = asdict(self)
        return max(weights, key=weights.__getitem__)


@dataclass(frozen=True, slots=True)
class PlannedRewrite:
    """A file to rewrite, and the expected cost in bytes read."""

    path: str
    changes: int
    bytes: int


def backlog(manifest: Manifest, rows_per_page: int) -> TableBacklog:
    """Sum up what waits in a table."""
    rows = {s.group: s.rows for file in manifest.files.values() for s in file.segments}
    waiting = _waiting(manifest)
    return TableBacklog(
        deltas=len(manifest.deltas),
        changes=sum(waiting.values()),
        bytes=sum(
            d.file.bytes * sum(d.waiting.values()) // max(d.rows, 1) for d in manifest.deltas
        ),
        rows=sum(rows.values()),
        pages=sum(
            touched_pages(rows.get(group, _NO_ROWS), changes, rows_per_page)
            for group, changes in waiting.items()
        ),
        oldest_ms=min((delta.committed_ms for delta in manifest.deltas), default=None),
    )


def touched_pages(rows: int, changes: int, rows_per_page: int) -> float:
    """Return how many pages of a segment are changed if changes are distributed uniformly over its
    rows.
    """
    pages = max(1, math.ceil(rows / rows_per_page))
    return pages * (1.0 - (1.0 - 1.0 / pages) ** changes)


def pressure(waiting: TableBacklog, policy: CompactionPolicy, now_ms: EpochMs) -> Pressure:
    """Return how close each reason for a compaction is; all are 0 if nothing waits."""
    if waiting.oldest_ms is None or not waiting.changes:
        return Pressure(0.0, 0.0, 0.0, 0.0, 0.0)
    age_seconds = max(0.0, (now_ms - waiting.oldest_ms) / 1000)
    return Pressure(
        deltas=waiting.deltas / policy.deltas_max,
        bytes=waiting.bytes / policy.bytes_max,
        age=age_seconds / policy.age_seconds_max,
        ratio=waiting.changes / max(waiting.rows, _NO_ROWS) / policy.ratio_max,
        pages=waiting.changes / max(waiting.pages, 1.0) / policy.changes_per_page_min,
    )


def next_tables(
    pressures: Mapping[str, Pressure], running: Collection[str], cap: int
) -> tuple[str, ...]:
    """Choose the tables to compact next: of those that are due, the ones whose changes have waited
    the longest, each in one compaction at a time.

    `running` are those being compacted now, `cap` is how many there may be at once. By age, since
    other reasons can't be compared between tables: a small hot table is due a thousand times over
    after each batch. So a due table waits for at most one compaction of each other table, and the
    number of its deltas is bounded, however hot the others are.
    """
    free = max(0, cap - len(running))
    due = [name for name, one in pressures.items() if one.score >= 1 and name not in running]
    return tuple(
        sorted(due, key=lambda name: (-pressures[name].age, -pressures[name].score, name))[:free]
    )


def work(manifest: Manifest) -> tuple[PlannedRewrite, ...]:
    """Return the base files with waiting changes, those with the most changes per byte first."""
    waiting = _waiting(manifest)
    found = [
        PlannedRewrite(file.path, _changes_in(file, waiting), file.bytes)
        for file in manifest.files.values()
    ]
    return tuple(
        sorted(
            (one for one in found if one.changes),
            key=lambda one: (-one.changes / max(one.bytes, 1), one.path),
        )
    )


def tasks(
    files: Sequence[PlannedRewrite], bytes_max: int, tasks_max: int
) -> tuple[tuple[str, ...], ...]:
    """Distribute files to tasks of about `bytes_max` each, or more if `tasks_max` tasks are too few
    for that.

    The largest files come first, each to the task with the least work, so that tasks end at about
    the same time. There are as few tasks as the bytes need, since each task reads the deltas
    itself.
    """
    total = sum(one.bytes for one in files)
    count = min(max(1, math.ceil(total / bytes_max)), tasks_max, len(files))
    loads = [0] * count
    shares: list[list[str]] = [[] for _ in range(count)]
    for one in sorted(files, key=lambda one: (-one.bytes, one.path)):
        lightest = min(range(count), key=lambda at: (loads[at], len(shares[at])))
        loads[lightest] += one.bytes
        shares[lightest].append(one.path)
    return tuple(tuple(share) for share in shares)


def ingest_must_wait(waiting: TableBacklog, deltas_max: int) -> bool:
    """Whether a table has so many waiting deltas that its ingest pauses until compaction has caught
    up.
    """
    return waiting.deltas >= deltas_max


def _waiting(manifest: Manifest) -> dict[int, int]:
    changes: dict[int, int] = {}
    for delta in manifest.deltas:
        for group, count in delta.waiting.items():
            changes[group] = changes.get(group, 0) + count
    return changes


def _changes_in(file: BaseFile, waiting: Mapping[int, int]) -> int:
    return sum(waiting.get(segment.group, 0) for segment in file.segments)
