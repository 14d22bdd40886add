"""The demo's steps, one after another, and the end of everything that it started."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table as Shown

from lakesplice.apps.demo import comparison
from lakesplice.apps.demo.claims import claimed_folder
from lakesplice.apps.demo.folders import DemoFolders, prepare
from lakesplice.apps.demo.generator import Generator
from lakesplice.apps.demo.progress import Progress
from lakesplice.apps.demo.stopping import Stopper
from lakesplice.apps.demo.words import what_is_left
from lakesplice.apps.service import Service
from lakesplice.config import Settings
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.storage.system import SystemClock
from lakesplice.telemetry.logs import configure_logs
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.shop import Shop

INTERRUPTED: Final = 130
_CUSTOMERS: Final = 2_000
_LOOK_SECONDS: Final = 0.25
_CATCH_UP_SECONDS: Final = 180.0
_STOP_SECONDS: Final = 60.0


def run(folder: Path, seconds: int, rate: int, *, as_json: bool = False) -> int:
    """Run the demo in `folder`, making `rate` events a second for `seconds`; returns the exit code.

    With `as_json` its words go to the standard error, and the comparison to the standard output,
    one JSON object for each view of each table.

    0: both views of every table equal the truth; 1: one differs; 130: it was interrupted. An
    earlier demo in the folder is replaced; any other folder with something in it is refused, and so
    is one in which another demo runs.
    """
    places = DemoFolders(folder.absolute())
    with claimed_folder(places.folder):
        settings = prepare(places)
        configure_logs(settings.logging.level, settings.logging.format)
        return _Demo(places, settings, seconds, rate, as_json=as_json).run()


class _Demo:
    def __init__(
        self, places: DemoFolders, settings: Settings, seconds: int, rate: int, *, as_json: bool
    ) -> None:
        self._places = places
        self._settings = settings
        self._seconds = seconds
        self._rate = rate
        self._as_json = as_json
        self._console = Console(highlight=False, stderr=as_json)
        self._clock = SystemClock()
        self._broker: LocalBroker | None = None
        self._stopper = Stopper(self._say, self._abandon)
        self._step = 0

    def run(self) -> int:
        try:
            with self._stopper.listening(), ExitStack() as started:
                shop = self._work(started)
                self._next("comparing both views of every table with the shop's own rows")
                equal = self._compare(shop)
        except Exception:  # Ctrl-C reaches child processes too, whose deaths are no news then
            if not self._stopper.is_wished:
                raise
            self._say("stopped; nothing is left running")
            return INTERRUPTED
        self._explain()
        return 0 if equal else 1

    def _work(self, started: ExitStack) -> Shop:
        """Run the pipeline until everything produced is in both views, then stop it."""
        self._next("starting a real Kafka broker on this machine")
        self._start_broker(started)
        seed = self._clock.now_ms() % 1_000_000
        self._next(
            f"opening a shop with five tables (seed {seed}); Debezium events of its changes go to"
            f" Kafka, {self._rate} a second"
        )
        shop = Shop(seed, rows=_CUSTOMERS, clock=self._clock)
        servers = self._settings.kafka.bootstrap_servers
        generator = Generator(servers, shop, self._rate, self._clock)
        generator.start()
        started.callback(generator.stop)
        self._stopper.check()
        self._next("starting the service: Spark, ingest, compactor and page")
        service = Service(self._settings)
        started.callback(service.stop, _STOP_SECONDS)
        service.start()
        self._stopper.check()
        self._say(f"page: {service.page_url} (while it works)")
        self._next(f"watching for {self._seconds} seconds (Ctrl-C stops)")
        with Progress(self._console, self._clock) as progress:
            self._watch(generator, service, progress)
        started.close()
        return shop

    def _start_broker(self, started: ExitStack) -> None:
        jars = ensure_jars(KAFKA_BROKER, self._settings.spark.jars_folder)
        self._stopper.check()
        port = int(self._settings.kafka.bootstrap_servers.rpartition(":")[2])
        self._broker = LocalBroker(jars, self._places.broker, port)
        started.callback(self._broker.stop)
        self._broker.start()
        self._stopper.check()

    def _watch(self, generator: Generator, service: Service, progress: Progress) -> None:
        until = self._clock.monotonic() + self._seconds

        def look(what: str) -> None:
            status = service.status()
            if not status.running:
                service.stop()  # raises what ended it
            progress.show(what, generator.produced.events, status)
            self._stopper.wait(_LOOK_SECONDS)

        while self._clock.monotonic() < until:
            look("working")
        generator.stop()
        ends, lake = generator.produced.ends, self._places.lake
        self._await(look, "reading the rest", lambda: comparison.stands_at(lake, ends))
        self._await(look, "compacting the rest", lambda: comparison.nothing_waits(lake))

    def _await(self, look: Callable[[str], None], what: str, done: Callable[[], bool]) -> None:
        until = self._clock.monotonic() + _CATCH_UP_SECONDS
        while not done():
            look(what)
            if self._clock.monotonic() > until:
                # Not an error in itself: the comparison that follows shows what is missing.
                self._say(f"{what} took longer than {_CATCH_UP_SECONDS:.0f} s; continuing without")
                return

    def _compare(self, shop: Shop) -> bool:
        verdicts = comparison.verdicts(shop, self._places.lake)
        shown = Shown("table", "view", "read by", "version", "rows", "compared with the truth")
        for verdict in verdicts:
            if self._as_json:
                print(json.dumps(_values(verdict)), flush=True)
            outcome = "[red]differs[/]" if verdict.difference else "[green]equal[/]"
            shown.add_row(
                verdict.table, verdict.view, verdict.engine,
                str(verdict.version), f"{verdict.rows:,}", outcome,
            )  # fmt: skip
        self._console.print(shown)
        different = [verdict for verdict in verdicts if verdict.difference]
        for verdict in different:
            self._say(f"{verdict.table}, {verdict.view}: {verdict.difference}")
        for answer in comparison.answers(self._places.lake):
            shown = Shown(*answer.columns, title=answer.title, title_justify="left")
            for row in answer.rows:
                shown.add_row(*(str(value) for value in row))
            self._console.print(shown)
        return not different

    def _explain(self) -> None:
        self._console.print(what_is_left(self._places), markup=False, soft_wrap=True)

    def _next(self, what: str) -> None:
        self._stopper.check()
        self._step += 1
        self._console.print(f"[bold]{self._step}. {what}[/]", soft_wrap=True)

    def _say(self, what: str) -> None:
        self._console.print(f"   {what}", markup=False, soft_wrap=True)

    def _abandon(self) -> None:
        """End at once without leaving a broker behind: the user didn't wait for a clean stop."""
        if self._broker is not None:
            self._broker.kill()
        os._exit(INTERRUPTED)


def _values(verdict: comparison.Verdict) -> dict[str, object]:
    difference = None if verdict.difference is None else str(verdict.difference)
    return {
        "table": verdict.table,
        "view": verdict.view,
        "engine": verdict.engine,
        "version": verdict.version,
        "rows": verdict.rows,
        "difference": difference,
    }
