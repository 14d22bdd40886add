"""Tables with changes that wait, and a compactor whose rewrites are done in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lakesplice.apps.service.upkeep.compactor import Compactor
from lakesplice.spark.jobs.rewrites import RewriteTask
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.compact import Compacted, compact_files
from tests.support.simulated import rows_of
from tests.support.simulated_service import Scene

DELTAS_MAX = 2
HELD_AT = 4
SECONDS_MAX = 30
POLL_SECONDS = 0.05


class Rewrites:
    """Rewrites files as a task does; fails for the tables in `errors`, waits for `may_end`."""

    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}
        self.done: list[str] = []
        self.began, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        self.meanwhile: Any = lambda: None

    def __call__(self, _: Any, tasks: Sequence[RewriteTask]) -> list[Compacted]:
        (topic,) = {topic for task in tasks for topic in task.manifest.sources}
        self.began.set()
        assert self.may_end.wait(SECONDS_MAX)
        if topic in self.errors:
            raise self.errors[topic]
        self.done.append(topic)
        self.meanwhile()
        return [
            compact_files(one.store, one.manifest, one.paths, one.rewriter, one.entropy)
            for one in tasks
        ]


class Compacting(Scene):
    """Tables with changes that wait, and who compacts them."""

    def __init__(self, folder: Path) -> None:
        due: dict[str, float] = {
            "deltas_max": DELTAS_MAX,
            "back_pressure_deltas": HELD_AT,
            "ratio_max": 100,
            "poll_seconds": POLL_SECONDS,
        }
        super().__init__(folder, compaction=due, merge={"files_max": 100})
        self.rewrites = Rewrites()
        session: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
        self.compactor = Compactor(self.driver, self.tables, session, self.rewrites)
        self.put(*range(20))
        self.batch()

    def store(self) -> Store:
        return self.lake

    def change(self, *which: int, times: int = DELTAS_MAX) -> None:
        """Let changes wait for these tables' compaction, a delta or more each time."""
        for _ in range(times):
            for at in which:
                source = self.sources[at]
                # One that changes nothing makes no event.
                source.topic.append(0, next(e for key in range(20) if (e := source.put(key))))
            self.batch()

    def waiting(self) -> list[bool]:
        return [bool(self.table(at).manifest.deltas) for at in range(len(self.sources))]

    def require_compacted(self, at: int) -> None:
        store = self.table(at).store
        assert not self.table(at).manifest.deltas
        assert rows_of(store, View.READ_OPTIMISED) == rows_of(store)
