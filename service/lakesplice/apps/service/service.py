"""The service: one driver of one lake, from Kafka to tables, until it is asked to stop.

    start        take a generation, start Spark, open the topics' tables
    main loop    a query over the topics that can be read, and one over those far behind; they
                 restart, from the offsets in the manifests, when topics are added, a table is
                 parked or an ingest is refused
    beside it    compaction threads, the page, the generation's heartbeat
    requests     commands are executed between two batches, before queries restart
    stop         running batches are finished if time allows, else dropped whole

A crash at any point is safe: the manifests have the offsets of each table.
"""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from functools import partial

import structlog
from pyspark.sql import SparkSession

from lakesplice import __version__
from lakesplice.apps.lake import require_lake
from lakesplice.apps.record_reading import registry_of
from lakesplice.apps.service.broker import (
    dead_letter_topic,
    group_offsets,
    topic_catalogue,
)
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.loop import QueryLoop
from lakesplice.apps.service.page import ServiceAnswers, site
from lakesplice.apps.service.schema_topics import schema_topics_of
from lakesplice.apps.service.status.service_status import (
    ServiceStatus,
    log_once_summary,
    table_status,
)
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.table_kinds import table_kinds, topic_reading
from lakesplice.apps.service.tables import AllTables, TablesReadAhead
from lakesplice.apps.service.tables.gauges import show_memory
from lakesplice.apps.service.threads import ThreadErrors, run_beside
from lakesplice.apps.service.upkeep.compactor import Compactor
from lakesplice.apps.service.upkeep.mirrors import Mirrors
from lakesplice.apps.service.upkeep.verifications import Verifications
from lakesplice.apps.service_session import JvmStart, open_session
from lakesplice.config import Settings
from lakesplice.model.driver_status import DriverStatus
from lakesplice.spark.jobs.worker_daemon import start_workers
from lakesplice.spark.kafka.query_folders import remove_leftovers
from lakesplice.spark.session import cores, is_authenticated
from lakesplice.storage.stores import open_store
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.driver.generation import Generation, take_generation
from lakesplice.table.protocol.ports import Store
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.endpoints import application, endpoints
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.http import WebServer
from lakesplice.telemetry.logs import configure_logs
from lakesplice.telemetry.registry import Metrics
from lakesplice.telemetry.tracing import Tracing, open_tracing

_TICK_SECONDS = 0.2
_ALIVE_SECONDS = 120.0
EXIT_NOT_ALL = 1


class Service:
    """One driver. `start` returns once it reads, `stop` once all of it has ended.

    `start` and `stop` are called once each, from one thread; `status` may be called from any.
    `exit_code` is the exit code for a process that did nothing else. `errors` reports errors of
    threads.
    """

    def __init__(
        self, settings: Settings, *, once: bool = False, jvm: JvmStart | None = None
    ) -> None:
        """`jvm` is the session's JVM, if it starts already."""
        self._settings = settings
        self._once = once
        self._jvm = jvm
        self._log = structlog.get_logger("lakesplice")
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._ended = threading.Event()
        self._metrics = Metrics()
        self.errors = ThreadErrors(self._metrics, self._log)
        self._metrics.set(metric.BUILD_INFO, 1, version=__version__)
        self._metrics.set(metric.OBJECTIVE, settings.alerts.objective)
        self._metrics.before_page(lambda: show_memory(self._metrics))
        self._health = Health(_ALIVE_SECONDS, awaited={"lake": "the service starts"})
        self._answers = ServiceAnswers(settings, self._health, SystemClock())
        self._server: WebServer | None = None
        self._tables: AllTables | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._stop_timeout = settings.stop_timeout
        self.exit_code = 0

    @property
    def page_url(self) -> str:
        """The address of the page; empty if there is none."""
        return f"{self._server.url}/" if self._server else ""

    def begin(self) -> None:
        """Start everything in a thread of its own and return at once."""
        self._thread = threading.Thread(target=self._main, name="lakesplice-main", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Start everything and return when the first query reads; raises what prevents that."""
        self.begin()
        while not self._started.wait(_TICK_SECONDS):
            if self._ended.is_set():
                break
        self._raise()

    def stop(self, timeout: float | None = None) -> None:
        """End within about `timeout` seconds: finish the running batch, else drop it."""
        if timeout is not None:
            self._stop_timeout = timeout
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._raise()

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the service to end; True if it has ended."""
        return self._ended.wait(seconds)

    def status(self) -> ServiceStatus:
        """Return what the service does now."""
        now = SystemClock().now_ms() / 1000
        tables = tuple(table_status(table, now) for table in self._tables or ())
        return ServiceStatus(tables, not self._ended.is_set())

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _main(self) -> None:
        try:
            with ExitStack() as stack:
                self._run(stack)
        except BaseException as error:
            self._error = error
            self._log.error("service-failed", error=str(error))
        finally:
            self._ended.set()

    def _run(self, stack: ExitStack) -> None:
        settings = self._settings
        if settings.metrics.enabled:
            page = site(self._answers)
            routes = [*page.routes, *endpoints(self._metrics, self._health)]
            app = application(routes, page.errors, settings.metrics.token)
            unexpected = partial(self.errors.report, "web")
            server = WebServer(app, settings.metrics.host, settings.metrics.port, unexpected)
            server.start()
            stack.callback(server.close)
            self._server = server
            self._log.info("page", url=self.page_url)
        lake = open_store(settings.lake.address, settings.lake.options)
        require_lake(lake)
        generation = self._take_lake(lake)
        if generation is not None:
            stack.callback(generation.release)
            ahead = TablesReadAhead(lake)
            stack.callback(ahead.close)
            run_beside(ahead.read, "read-ahead", self.errors, self._stopping)
            # Not earlier: a standby needs no more of Spark than its JVM.
            self._drive(stack, self._session(stack), lake, generation, ahead)

    def _session(self, stack: ExitStack) -> SparkSession:
        remove_leftovers()
        session = open_session(self._settings, self._jvm)
        stack.callback(session.stop)
        if not is_authenticated(session):
            self._log.warning("executors-not-authenticated", master=self._settings.spark.master)
        return session

    def _drive(
        self,
        stack: ExitStack,
        session: SparkSession,
        lake: Store,
        generation: Generation,
        ahead: TablesReadAhead,
    ) -> None:
        """Be the lake's driver until asked to stop or, with `once`, until everything is read."""
        kafka = self._settings.kafka
        driver = self._driver(stack, session, lake, generation)
        # At the same time topics and tables are read for the first time, which needs no Spark.
        self._start_workers(stack, session)
        kinds = table_kinds(driver, session, ahead)
        tables = self._tables = AllTables([kind.tables for kind in kinds])
        catalogue = topic_catalogue(session, kafka)
        stack.callback(catalogue.close)
        compactor = Compactor(driver, tables, session)
        # History tables have no rows that could be compared.
        verifications = Verifications(driver, kinds[0].tables)
        mirrors = Mirrors(driver, tables)
        for upkeep in (compactor, verifications, mirrors):
            stack.callback(upkeep.stop, self._health.tick)
            upkeep.start()
        dead_letters = dead_letter_topic(session, kafka)
        if dead_letters is not None:
            stack.callback(dead_letters.close)
        hold_back = compactor.hold_back
        readings = [
            topic_reading(kind, session, catalogue, hold_back=hold_back, dead_letters=dead_letters)
            for kind in kinds
        ]
        reporter = StatusReporter(driver, [one.sources for one in readings], self._health)
        self._answers.show(driver, tables, reporter)
        loop = QueryLoop(
            driver=driver,
            session=session,
            readings=readings,
            health=self._health,
            stopping=self._stopping,
            reporter=reporter,
            group=group_offsets(stack, driver, tables, session),
        )
        self._run_loop(loop, ahead, compactor, mirrors)
        self._log_end(reporter.close(), tables)

    def _start_workers(self, stack: ExitStack, session: SparkSession) -> None:
        over = threading.Event()
        stack.callback(over.set)
        run_beside(partial(start_workers, session, cores(session)), "workers", self.errors, over)

    def _driver(
        self, stack: ExitStack, session: SparkSession, lake: Store, generation: Generation
    ) -> Driver:
        settings = self._settings
        return Driver(
            settings=settings,
            lake=lake,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            generation=generation,
            metrics=self._metrics,
            log=self._log.bind(generation=generation.number),
            schemas=registry_of(settings.schema_registry),
            schema_topics=schema_topics_of(settings, session, self._log),
            tracing=self._tracing(stack, generation),
        )

    def _tracing(self, stack: ExitStack, generation: Generation) -> Tracing:
        tracing = self._settings.tracing
        facts: dict[str, str | int] = {
            "service.version": __version__,
            "lakesplice.generation": generation.number,
        }
        opened = open_tracing(tracing.endpoint, tracing.headers, tracing.share, facts)
        stack.callback(opened.close)
        return opened

    def _log_end(self, status: DriverStatus, tables: AllTables) -> None:
        """Log what was done, if everything was to be read once and was."""
        if self._once and not self._stopping.is_set():
            self.exit_code = 0 if log_once_summary(self._log, status, tables) else EXIT_NOT_ALL

    def _run_loop(
        self, loop: QueryLoop, ahead: TablesReadAhead, compactor: Compactor, mirrors: Mirrors
    ) -> None:
        """Run the queries, then finish the running batches and compactions."""

        def started() -> None:
            ahead.close()  # all tables are open
            self._started.set()

        loop.run(started, once=self._once)
        if self._stopping.is_set():
            loop.drain(self._stop_timeout)
        elif self._once:
            compactor.finish()
            mirrors.finish()

    def _take_lake(self, lake: Store) -> Generation | None:
        """Become the lake's driver; wait as a standby while another one lives. None if the service
        is to stop meanwhile.
        """
        self._health.expect(
            "lake",
            "this service waits, since another driver has the lake, or had it until a moment ago",
        )
        self._health.expect("query", "the first query has not started")
        self._metrics.set(metric.DRIVER_STANDBY, 1)
        self._log.info("standby")
        generation = take_generation(
            lake,
            SystemClock(),
            self._wait_for_lease,
            unexpected=partial(self.errors.report, "heartbeat"),
            lease_seconds=self._settings.lease,
        )
        if generation is not None:
            self._health.reached("lake")
            self._metrics.set(metric.DRIVER_STANDBY, 0)
            self._metrics.set(metric.DRIVER_GENERATION, generation.number)
            self._log.info("driver", generation=generation.number)
        return generation

    def _wait_for_lease(self, seconds: float) -> bool:
        """Wait while another driver may be alive; False if the service is to stop meanwhile."""
        left = seconds
        while left > 0:
            # Long leases have long waits, in which a health check would take the service for dead.
            self._health.tick()
            if self._stopping.wait(min(left, _ALIVE_SECONDS / 4)):
                return False
            left -= _ALIVE_SECONDS / 4
        return True


def run(settings: Settings, *, once: bool = False, jvm: JvmStart | None = None) -> int:
    """Run the service until SIGTERM or SIGINT, or with `once` until everything is read; return the
    exit code. `jvm` is what `begin_jvm` returned for the settings.

    0 after a clean end, also if a batch had to be dropped. 1 with `once` if no topic matches, or
    the store or the registry failed for a table to the end. Must be called in the main thread.
    """
    configure_logs(settings.logging.level, settings.logging.format)
    service = Service(settings, once=once, jvm=jvm)
    threading.excepthook = service.errors.report_unhandled
    stop_asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop_asked.set())
    service.begin()
    while not service.wait(_TICK_SECONDS):
        if stop_asked.is_set():
            break
    service.stop()
    return service.exit_code
