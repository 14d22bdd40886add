"""The service as a user runs it: a separate process with a configuration file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from lakesplice import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.spark.jobs import worker_daemon
from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record
from tests.support import machine, short_jvms, warm_jvms
from tests.support.privacy import PLANTED, require_private
from tests.support.waiting import until
from tests.support.warm_jvms import WarmJvm

_COMMAND = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()"]
RUN = [*_COMMAND, "run", "--config"]
ONCE_SECONDS_MAX = 240.0
EVENT_SECONDS_MAX = 240.0
_COMMAND_SECONDS_MAX = 300.0


class Lake:
    """One lake, in a folder or a bucket, and the configuration that fills it."""

    def __init__(
        self, folder: Path, bootstrap_servers: str, topic_pattern: str, **sections: Any
    ) -> None:
        """`sections` are further sections of the configuration; those given here win over ours."""
        self.root = folder / "lake"
        lake = {"root": str(self.root), **sections.pop("lake", {})}
        self.address, self.options = lake["root"], lake.get("options", {})
        self.config = folder / "lakesplice.yaml"
        self.log = folder / "service.log"
        self.scratch = folder / "scratch"
        self._opened: dict[str, tuple[object, Table]] = {}
        self._entries: list[dict[str, Any]] = []
        self._bytes_read = 0
        kafka = {
            "bootstrap_servers": bootstrap_servers,
            "topic_pattern": topic_pattern,
            "topic_poll_seconds": 1,
            "request_timeout_seconds": 10,
        }
        spark = {"master": warm_jvms.MASTER, "driver_memory": warm_jvms.MEMORY}
        # Its own settings of Spark or of logs hold for a JVM as a whole.
        self._own_jvm = bool(sections.keys() & {"spark", "logging"})
        settings: dict[str, Any] = {
            "lake": lake,
            "trigger": 0.5,
            "metrics": {"enabled": False},
            "logging": {"format": "json"},
            **sections,
            "kafka": {**kafka, **sections.get("kafka", {})},
            "spark": {**spark, **sections.get("spark", {})},
        }
        for name, planted in PLANTED.items():
            settings[name] = {**planted, **settings.get(name, {})}
        folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(yaml.safe_dump(settings))

    def configure(self, **sections: Mapping[str, Any]) -> None:
        """Let the next run have these settings as well."""
        settings = yaml.safe_load(self.config.read_text())
        for name, section in sections.items():
            settings[name] = {**settings.get(name, {}), **section}
        self.config.write_text(yaml.safe_dump(settings))

    def path(self, topic: str) -> Path:
        """The folder of the topic's table, of a lake in a folder."""
        return self.root / TableName.from_topic(topic).path

    def table(self, topic: str) -> Table:
        """The topic's table as it stands now: the same object until its log has changed, since
        whoever waits asks often, and the service needs the processor, too.
        """
        path = TableName.from_topic(topic).path
        log = _files_of(self.root / path / "_delta_log")
        known = self._opened.get(path)
        if log is None or known is None or known[0] != log:
            known = log, Table.open(f"{self.address}/{path}", options=self.options)
            self._opened[path] = known
        return known[1]

    def parked(self, topic: str) -> ParkReason | None:
        """Why the topic's table is parked, if it is there and is."""
        try:
            return self.table(topic).snapshot.manifest.parked
        except TableNotFoundError:
            return None

    def require_parked(self, topic: str, code: ParkCode) -> ParkReason:
        """Why the topic's table is parked: it is, for a reason of this code."""
        reason = self.parked(topic)
        assert reason is not None, f"{topic} isn't parked"
        assert reason.code is code, reason
        return reason

    def said(self, event: str) -> list[dict[str, Any]]:
        """What the service logged under this name, over all its runs."""
        if self.log.exists():
            with self.log.open("rb") as log:
                log.seek(self._bytes_read)
                # Without the line that is being written.
                whole, end, _ = log.read().rpartition(b"\n")
            self._bytes_read += len(whole) + len(end)
            lines = whole.splitlines()
            self._entries += [json.loads(line) for line in lines if line.startswith(b"{")]
        return [entry for entry in self._entries if entry.get("event") == event]

    def once(self) -> None:
        """`lakesplice run --once`, which must end well."""
        with self.running("--once") as service:
            service.ends_well(ONCE_SECONDS_MAX)

    @contextmanager
    def running(self, *arguments: str, own_jvm: bool = False) -> Iterator[RunningService]:
        """The service while the block runs; whatever is left of it then is killed. With `own_jvm`
        it starts its JVM itself, as users' services do; a test that kills it saves nothing without.
        """
        self.scratch.mkdir(exist_ok=True)
        jvm = None if own_jvm or self._own_jvm else warm_jvms.take(environment())
        # What a killed service leaves behind, its query's checkpoint too, stays with the test.
        variables = {"TMPDIR": str(self.scratch), **(jvm.variables if jvm else {})}
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*RUN, str(self.config), *arguments],
                env={**environment(), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        service = RunningService(process, self.log, jvm)
        try:
            yield service
        finally:
            service.kill()
            if jvm is not None:
                jvm.give_back(self.log)
        require_private(self.log, self.root)

    def examined(self, *arguments: str, password: str = "") -> tuple[int, list[dict[str, str]]]:
        """What `lakesplice doctor` finds: its exit code and findings."""
        done = self.command("doctor", "--json", "--timeout", "4m", *arguments, password=password)
        assert "Traceback" not in done.stderr
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def command(self, *arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
        """A command that needs a JVM, with the lake's configuration, in a process of its own."""
        jvm = warm_jvms.take(environment())
        done = subprocess.run(
            [*_COMMAND, *arguments, "--config", str(self.config)],
            env={**environment(), **(jvm.variables if jvm else {}), "MYSQL_PWD": password},
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS_MAX,
        )
        if jvm is not None:
            jvm.give_back(self.log)
        return done


class RunningService:
    """One process of the service with all that it started, a process group of its own, and the JVM
    that it uses if that isn't among them.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], log: Path, jvm: WarmJvm | None = None
    ) -> None:
        self._process = process
        self._log = log
        self._jvm = jvm

    @property
    def is_running(self) -> bool:
        """Whether the service has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End all at once, by SIGKILL: the driver, the workers, and the JVM unless the driver has
        ended well, and so its session there.
        """
        if self._jvm is not None and self._process.poll() != 0:
            self._jvm.kill()
        self._signal(signal.SIGKILL)
        self._process.wait()

    def workers(self) -> list[int]:
        """The process ids of the Python workers that run the service's tasks."""
        started = self._process.pid if self._jvm is None else self._jvm.pid
        columns = ["ps", "-ww", "-o", "pid=,ppid=,args=", "-s", str(started)]
        # Without a process left ps fails, and there is no worker either.
        listing = subprocess.run(columns, capture_output=True, text=True, check=False).stdout
        daemons = {pid for pid, _, args in _processes(listing) if worker_daemon.__name__ in args}
        return [pid for pid, parent, _ in _processes(listing) if parent in daemons]

    def terminate(self) -> None:
        """Ask the service to end, as an orchestrator does."""
        self._process.terminate()

    def freeze(self) -> None:
        """Stop all in its tracks, as a machine that stalls does."""
        self._signal(signal.SIGSTOP)
        if self._jvm is not None:
            self._jvm.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let what is frozen go on."""
        if self._jvm is not None:
            self._jvm.signal(signal.SIGCONT)
        self._signal(signal.SIGCONT)

    def ends(self, seconds_max: float = 60.0) -> int:
        """Wait for the process to end by itself, in time; its exit code."""
        return self._process.wait(seconds_max)

    def ends_well(self, seconds_max: float = EVENT_SECONDS_MAX) -> None:
        """Wait for the process to end; it must, in time and with exit code 0."""
        code = self._process.wait(seconds_max)
        assert code == 0, self.tail()

    def until(
        self, condition: Callable[[], bool], what: str, seconds_max: float = EVENT_SECONDS_MAX
    ) -> None:
        """Wait until the condition holds while the service runs."""
        until(condition, what, seconds_max, works=lambda: self.is_running, said=self.tail)

    def tail(self) -> str:
        """The end of what the service wrote."""
        return self._log.read_text(errors="replace")[-6_000:]

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def stands_at(lake: Lake, ends: Mapping[tuple[str, int], int]) -> bool:
    """Whether the tables hold all before these ends, which are per topic and partition."""
    wanted = defaultdict[str, dict[int, int]](dict)
    for (topic, partition), end in ends.items():
        wanted[topic][partition] = end
    return all(_stands_at(lake, topic, ends) for topic, ends in wanted.items())


def take_in(service: RunningService, lake: Lake, ends: Mapping[tuple[str, int], int]) -> None:
    """Wait until the tables hold all before these ends."""
    for topic in {topic: None for topic, _ in ends}:
        own = {place: end for place, end in ends.items() if place[0] == topic}
        service.until(partial(stands_at, lake, own), f"{topic} stands at {own}, of {ends}")


def _stands_at(lake: Lake, topic: str, ends: Mapping[int, int]) -> bool:
    try:
        offsets = lake.table(topic).offsets
    except TableNotFoundError:
        return False
    return all(offsets.get(partition, 0) >= end for partition, end in ends.items())


def require_table(lake: Lake, topic: str, truth: pa.Table) -> None:
    """The topic's table isn't parked and is the truth, in the real-time view, by `id`."""
    stored = lake.table(topic)
    assert stored.snapshot.manifest.parked is None
    assert compare(truth, stored.read(), ["id"]) is None


def ends_of(records: Iterable[Record]) -> dict[tuple[str, int], int]:
    """Per topic and partition one after the last offset among the records."""
    return {record[:2]: record.offset + 1 for record in sorted(records, key=lambda r: r[:3])}


def _files_of(folder: Path) -> object:
    """Something that is another once a file came or went; None without such a folder."""
    try:
        with os.scandir(folder) as entries:
            return folder.stat().st_ino, frozenset(entry.name for entry in entries)
    except FileNotFoundError:
        return None


def _processes(listing: str) -> list[tuple[int, int, str]]:
    rows = (line.split(maxsplit=2) for line in listing.splitlines())
    return [(int(pid), int(parent), args) for pid, parent, args in rows]


def environment() -> dict[str, str]:
    """Our environment, without the variables that tell tests where things are: no settings; its JVM
    is one that starts cheaply.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == machine.JARS_DIR or not name.startswith("LAKESPLICE_")
    }
    source = str(machine.ROOT / "service")
    path = os.pathsep.join(filter(None, (source, kept.get("PYTHONPATH"))))
    return {**kept, **short_jvms.environment(), "PYTHONPATH": path}
