"""Upkeep of a table besides compaction: merges of index runs and small base files, checkpoints and
clean-up of the log, vacuum, purge, layout, and change feeds, which begin and end as the settings
say.
"""

from __future__ import annotations

from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.retry_pauses import PausesByName
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.apps.service.upkeep.clusterings import Clusterings
from lakesplice.apps.service.upkeep.purges import Purges
from lakesplice.apps.service.upkeep.table_memory import ComputedOnce
from lakesplice.apps.service.upkeep.vacuums import Vacuums
from lakesplice.errors import FencedError, LakespliceError, UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.planning.rows.index_merge import plan_merge
from lakesplice.planning.upkeep.file_merge import FileMergePolicy, plan_file_merge
from lakesplice.planning.upkeep.file_sizes import bytes_of
from lakesplice.spark.jobs.rewrites import (
    FileMergeTask,
    MergeTask,
    lay_out,
    merge_files,
    merge_runs,
    purge_table,
)
from lakesplice.storage.stores import log_keeper, open_sink
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import IndexMerge
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.file_merge import file_merge
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.telemetry import catalogue as metric

# The pause after a failed merge of files.
_PAUSE_SECONDS = 300.0
# The pause after any failed upkeep: otherwise it would be retried at once, and leave files.
_PAUSES_SECONDS = (5.0, 30.0, 60.0, 120.0, 300.0)


class ChangeFeeds:
    """Switches the feed of one table at a time; two threads never call it for one table."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._refused: set[str] = set()

    def is_due(self, table: ServiceTable) -> bool:
        """Whether a setting asks for another state of the feed than the table has."""
        wanted = table.wants_change_feed
        if wanted is None or table.snapshot is None or str(table.name) in self._refused:
            return False
        return (table.manifest.feed is not None) != wanted

    def see_to(self, table: ServiceTable) -> None:
        """Begin or end the table's feed. A table that can't have one is logged, once."""
        name, wanted = str(table.name), bool(table.wants_change_feed)
        try:
            table.set_change_feed(on=wanted)
        except UsageError as error:
            self._refused.add(name)
            self._driver.log.warning("change-feed-refused", table=name, error=str(error))
        else:
            self._driver.log.info("change-feed", table=name, on=wanted, version=table.version)


class Upkeep:
    """Maintains one table at a time; two threads never call it for one table."""

    def __init__(self, driver: Driver, session: SparkSession) -> None:
        self._driver = driver
        self._session = session
        self._logs: dict[str, Maintenance] = {}
        self._seen: dict[str, int] = {}
        self._file_merges = ComputedOnce(self._plan_file_merge)
        self._no_file_merge_until: dict[str, float] = {}
        self._pauses = PausesByName(driver.clock, _PAUSES_SECONDS)
        self._vacuums = Vacuums(driver)
        self._purges = Purges(driver, partial(purge_table, session))
        self._feeds = ChangeFeeds(driver)
        self._clusterings = Clusterings(driver, partial(lay_out, session))

    def is_due(self, table: ServiceTable) -> bool:
        """Whether there are too many index runs or small files, the log has grown enough to look at
        it, it is time for a vacuum or a purge, the change feed is to begin or end, or files are to
        be laid out by columns.
        """
        if table.snapshot is None or self._pauses.is_on(str(table.name)):
            return False
        every, version = self._driver.settings.log.checkpoint_every, table.snapshot.version
        # After a start, counted from the last multiple: else hundreds of tables are due at once.
        grown = version - self._seen.setdefault(str(table.name), version - version % every)
        merges = self._merge_plan(table) is not None or self._file_merge_plan(table) is not None
        timed = self._vacuums.is_due(table) or self._purges.is_due(table)
        asked = self._feeds.is_due(table) or self._clusterings.is_due(table)
        return merges or grown >= every or timed or asked

    def see_to(self, table: ServiceTable) -> None:
        """Do what is due. Failures are logged, and the table has its next turn after a pause."""
        try:
            if self._feeds.is_due(table):
                self._feeds.see_to(table)
            if self._merge_plan(table) is not None:
                self._merge(table)
            if (paths := self._file_merge_plan(table)) is not None:
                self._merge_files(table, paths)
            self._care_for_log(table)
            if self._vacuums.is_due(table):
                self._vacuums.see_to(table, self._log_of(table))
            if self._purges.is_due(table):
                self._purges.see_to(table)
            if self._clusterings.is_due(table):
                self._clusterings.see_to(table)
        except FencedError:
            raise
        except (LakespliceError, PySparkException) as error:
            self._driver.log.error("upkeep-failed", table=str(table.name), error=str(error))
            self._pauses.begin(str(table.name), str(error))
        else:
            self._pauses.end(str(table.name))

    def _merge_plan(self, table: ServiceTable) -> range | None:
        sizes = [run.entries for run in table.manifest.runs]
        return plan_merge(sizes, self._driver.settings.index.runs_max)

    def _merge(self, table: ServiceTable) -> None:
        places = self._merge_plan(table)
        assert places is not None
        planned_on, runs = table.version, table.manifest.runs[places.start : places.stop]
        output = merge_runs(self._session, MergeTask(table.store, runs, self._driver.entropy))
        inputs = tuple(run.file.path for run in runs)
        table.commit(IndexMerge(self._driver.generation.number, inputs, output, planned_on))

    def _file_merge_plan(self, table: ServiceTable) -> tuple[str, ...] | None:
        now = self._driver.clock.monotonic()
        if now < self._no_file_merge_until.get(str(table.name), now):
            return None
        return self._file_merges.of(table)

    def _plan_file_merge(self, name: str, manifest: Manifest) -> tuple[str, ...] | None:
        settings = self._driver.settings.merge
        policy = FileMergePolicy(settings.small_bytes, settings.files_max, settings.target_bytes)
        files = manifest.files.values()
        small_bytes, _ = policy.sizes(bytes_of(files))
        small = sum(file.bytes < small_bytes for file in files)
        self._driver.metrics.set(metric.SMALL_FILES, small, table=name)
        chosen = plan_file_merge(files, policy)
        return None if chosen is None else tuple(file.path for file in chosen)

    def _merge_files(self, table: ServiceTable, paths: tuple[str, ...]) -> None:
        driver, name = self._driver, str(table.name)
        # A merge that fails must not keep the table's other upkeep waiting.
        self._no_file_merge_until[name] = driver.clock.monotonic() + _PAUSE_SECONDS
        planned_on, manifest = table.version, table.manifest
        task = FileMergeTask(table.store, manifest, paths, driver.entropy, open_sink)
        inputs, output = merge_files(self._session, task)
        generation = driver.generation.number
        outcome = table.commit(file_merge(generation, planned_on, inputs, output, manifest))
        if isinstance(outcome, Committed):
            driver.metrics.add(metric.MERGED_FILES, len(inputs))
            driver.metrics.add(metric.MERGED_BYTES, output.base.bytes)
        del self._no_file_merge_until[name]

    def _care_for_log(self, table: ServiceTable) -> None:
        snapshot = table.snapshot
        assert snapshot is not None
        self._seen[str(table.name)] = snapshot.version
        taken = self._log_of(table).care(snapshot)
        if taken is not None:
            tail = snapshot.version - taken.checkpoint_version
            self._driver.metrics.set(metric.LOG_TAIL, tail, table=str(table.name))
            self._vacuums.note(table, taken.expired)

    def _log_of(self, table: ServiceTable) -> Maintenance:
        driver, name = self._driver, str(table.name)
        log = self._logs.get(name)
        if log is None:
            settings = driver.settings
            log = self._logs[name] = Maintenance(
                table.store,
                log_keeper(table.store),
                driver.deletion_clock,
                checkpoint_every=settings.log.checkpoint_every,
                retention_seconds=settings.retention(table.origin),
                expiry=Expiry(table.store, table.commit, driver.generation.number),
            )
        return log
