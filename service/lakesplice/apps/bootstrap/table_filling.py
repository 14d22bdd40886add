"""Fills one table: starts or continues its shadow, reads its chunks while its topic feeds it, and
swaps it in.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice

from lakesplice.apps.bootstrap.shadow_upkeep import ShadowUpkeep
from lakesplice.apps.bootstrap.source_chunks import LoadBounds, ReadPlan, SourceChunks
from lakesplice.errors import RetryableError, UsageError
from lakesplice.model.names import TableName
from lakesplice.model.progress.shadow_plan import ShadowPlan
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.read_rows import ReadRows
from lakesplice.storage.source.rows import SourceConnection, TableChanged
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.read_rows_commit import commit_chunks
from lakesplice.table.ingest.shadow import is_past_reads
from lakesplice.table.protocol.ports import Clock, Entropy, Progress

FEED_SECONDS = 10.0
_CHANGES_MAX = 20
# So many chunks per connection are read ahead, and so many share a commit, which costs as much as
# thousands of rows (`benchmarks.bootstrap`); fewer of them if their rows are long.
_AHEAD, _TOGETHER, _TOGETHER_BYTES = 4, 2, 64 << 20
_SETTLE_POLL_SECONDS = 1.0

Reads = list[ReadRows] | TableChanged


@dataclass
class TableFilling:
    """Fills one shadow, `table`; not thread-safe.

    `feed` applies the topic's records up to the topic's present end. `look_again` returns how to
    read the source's table after it was altered. `connect` opens a connection to the source.
    """

    name: TableName
    table: DriverTable
    plan: ShadowPlan
    read_plan: ReadPlan
    reading: Callable[[], RecordReading]
    feed: Callable[[], None]
    look_again: Callable[[], ReadPlan]
    connect: Callable[[], SourceConnection]
    bounds: LoadBounds
    clock: Clock
    entropy: Entropy
    progress: Progress
    _runs: RunCache = field(default_factory=RunCache)
    _read_rows: int = 0
    _upkeep: ShadowUpkeep = field(init=False)

    def __post_init__(self) -> None:
        self._upkeep = ShadowUpkeep(self.table, self.entropy, self._runs)

    def fill(self) -> None:
        """Read every missing chunk, and feed the shadow meanwhile. Blocks.

        Raises `UsageError` if the table can't take the rows, and the errors of `SourceChunks.read`.
        """
        self.feed()  # it shows the columns, and whether the topic exists
        changes = 0
        open_chunks = self._open_chunks()
        self.progress.expect(len(open_chunks))
        while open_chunks:
            if self._read_through(open_chunks):
                return
            changes += 1
            if changes > _CHANGES_MAX:
                raise RetryableError(
                    "the table was altered several times meanwhile; run the command again",
                    table=str(self.name),
                )
            self.read_plan = self.look_again()
            open_chunks = self._open_chunks()

    def settle(self, seconds: float) -> bool:
        """Wait for newer records; see `settled`."""
        return settled(self.table, self.feed, self.clock, seconds)

    def _open_chunks(self) -> list[int]:
        backfill = self.table.manifest.backfill
        assert backfill is not None, "the table is a shadow"
        return backfill.open_chunks()

    def _read_through(self, chunks: list[int]) -> bool:
        """Read chunks over all connections; return False if the source's table was altered
        meanwhile.
        """
        source = SourceChunks(self.connect, self.read_plan, self.plan, self.bounds, self.clock)
        pool = ThreadPoolExecutor(self.bounds.connections, "chunks")
        try:
            return self._take_all(source, pool, chunks)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            source.close()

    def _take_all(self, source: SourceChunks, pool: ThreadPoolExecutor, chunks: list[int]) -> bool:
        began = fed = self.clock.monotonic()
        left, under_way = iter(chunks), dict[Future[Reads], int]()
        ready: dict[int, Reads] = {}
        while True:
            ahead = _AHEAD * self.bounds.connections - len(under_way) - len(ready)
            for chunk in islice(left, max(0, ahead)):
                under_way[pool.submit(source.read, chunk)] = chunk
            if under_way:
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                ready |= {under_way.pop(one): one.result() for one in done}
            if not ready:
                return True
            if under_way and not self._are_enough(ready):
                continue
            if not self._take(ready):
                return False
            ready = {}
            if self.clock.monotonic() - fed > FEED_SECONDS:
                self.feed()
                fed = self.clock.monotonic()
            self._keep_to_rate(began)

    def _are_enough(self, reads: dict[int, Reads]) -> bool:
        """Whether chunks should be committed now."""
        if len(reads) >= _TOGETHER * self.bounds.connections or TableChanged in map(
            type, reads.values()
        ):
            return True
        parts = (part for read in reads.values() if isinstance(read, list) for part in read)
        return sum(int(part.images.nbytes) for part in parts) > _TOGETHER_BYTES

    def _take(self, reads: dict[int, Reads]) -> bool:
        """Commit chunks; return False if one could not be read, since the table was altered."""
        rows = {chunk: read for chunk, read in reads.items() if not isinstance(read, TableChanged)}
        if rows:
            refused = commit_chunks(self.table, rows, self.reading(), self.entropy, self._runs)
            if refused is not None:
                raise UsageError(f"the table can't take a row: {refused.reason}")
            self._upkeep.merge_runs()
            self.progress.advance(len(rows))
            self._read_rows += sum(read.count for parts in rows.values() for read in parts)
        return len(rows) == len(reads)

    def _keep_to_rate(self, began: float) -> None:
        if self.bounds.rows_per_second:
            due = began + self._read_rows / self.bounds.rows_per_second
            self.clock.wait(max(0.0, due - self.clock.monotonic()))


def settled(table: DriverTable, feed: Callable[[], None], clock: Clock, seconds: float) -> bool:
    """Feed a shadow until every partition has passed the positions of all chunks, for a limited
    time. Return whether that is so: then the shadow equals the source at one moment.
    """
    feed()
    until = clock.monotonic() + seconds
    while not is_past_reads(table.manifest):
        if clock.monotonic() >= until:
            return False
        clock.wait(_SETTLE_POLL_SECONDS)
        feed()
    return True
