"""Fixtures for every folder: a real Kafka broker, new topics, and the options of this run.

Tests are marked by their folder. Tests that a machine can't run are skipped by name, and counted at
the end.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from _pytest.terminal import TerminalReporter

from lakesplice.spark.jars import KAFKA_BROKER
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.s3_server import S3Server
from lakesplice.testing.servers.process import java_command
from tests.support import lanes, machine, warm_jvms
from tests.support.apicurio import Apicurio
from tests.support.sources import SourceServer, source_server
from tests.support.trino import LocalTrino

if TYPE_CHECKING:
    from xdist.remote import Producer

    from tests.support.command_line import CommandLine

pytest_plugins = ("tests.support.skips",)

# jsonschema imports it where it is, to know IRIs: it builds 38 grammars, for as long as a hundred
# tests last, and no schema of ours has an IRI.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # so that no import finds it

MARKED_FOLDERS = ("integration", "e2e", "crash")
TESTS = Path(__file__).parent
# So many new objects are looked through for cycles at once; Python's 700 cost a tenth of a run.
_OBJECTS_PER_COLLECTION = 20_000

# Two shared cores make single examples slow at times; a deadline would only report the neighbours.
_slow = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "default", deadline=None, suppress_health_check=_slow, max_examples=16
)
# Without shrinking, which may take minutes for each test that fails: other profiles do it.
hypothesis.settings.register_profile(
    "fast",
    deadline=None,
    suppress_health_check=_slow,
    max_examples=6,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.reuse, hypothesis.Phase.generate),
)
# A gate says of two commits the same unless they differ; every other run draws anew.
hypothesis.settings.register_profile(
    "gate", hypothesis.settings.get_profile("default"), derandomize=True
)
hypothesis.settings.register_profile(
    "nightly", deadline=None, suppress_health_check=_slow, max_examples=500
)
hypothesis.settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lakesplice")
    group.addoption("--kills", type=int, default=1, help="how often the crash tests kill (1)")
    group.addoption("--seed", type=int, default=None, help="the seed of the crash tests (random)")
    group.addoption(
        "--bucket-calls", type=int, default=1, help="store calls failed in a bucket (1; 0: all)"
    )
    group.addoption(
        "--nightly", action="store_true", help="run what takes minutes by its nature as well"
    )
    group.addoption(
        "--image-base", default=None, help="base of the image that is built (a Debian made here)"
    )
    group.addoption(
        "--pictures", action="store_true", help="write the pictures of the documents anew"
    )
    group.addoption(
        "--splice-examples", type=int, default=4, help="files drawn per test of readers (4)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Yield to services; profiles of tests whose example is a file through every reader; JVMs that
    services share, where not everything is to be proved.
    """
    lanes.yield_to_services()
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    warm_jvms.use(not config.getoption("--nightly"))
    wanted: int = config.getoption("--splice-examples")
    # Without shrinking, which would take minutes: a file found is small, and printed.
    several = hypothesis.settings(
        deadline=None,
        derandomize=config.getoption("--hypothesis-profile") == "gate",
        suppress_health_check=[*hypothesis.HealthCheck],
        max_examples=wanted,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.reuse, hypothesis.Phase.generate),
    )
    hypothesis.settings.register_profile("readers", several)
    hypothesis.settings.register_profile("readers of Spark", several, max_examples=-(-wanted // 3))
    # The first example is the simplest one, so a single one would be the same for all commits.
    hypothesis.settings.register_profile(
        "readers of operations", several, max_examples=max(2, -(-wanted // 10))
    )


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> lanes.Lanes:
    """Services in one lane, everything else in others, however many workers there are."""
    return lanes.Lanes(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        folder = _folder_of(item.path)
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)
    if not config.getoption("--nightly"):
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@cache
def _folder_of(file: Path) -> str:
    """The folder of `tests` that a file of tests is in; empty if it is elsewhere."""
    return file.relative_to(TESTS).parts[0] if file.is_relative_to(TESTS) else ""


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end, so no collection looks through them again."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        terminalreporter.section("what this machine could not run")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:4d}  {reason}")
    lanes.write_sums(terminalreporter)


@pytest.fixture(autouse=True, scope="module")
def _environment_is_left_as_found() -> Iterator[None]:
    """What a file sets in the environment, as Spark's session does, reaches no other file."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="session")
def shared() -> Callable[..., Path]:
    """`shared("examples", "captures")`: that folder of the shared corpora, or a skip by name."""
    return machine.shared_dir


@pytest.fixture(scope="session")
def broker_jars() -> list[Path]:
    """A Kafka broker's classpath."""
    return machine.jars(KAFKA_BROKER)


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """One real schema registry for the whole run; use subjects of your own."""
    with Apicurio(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="session")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalTrino]:
    """One real Trino for the whole run, of nightly tests: its first start fetches 800 MB."""
    with LocalTrino(tmp_path_factory.mktemp("trino")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The bootstrap servers of one real Kafka broker for the whole run; use topics of your own.

    A container where an engine answers, else a process on this machine. Nobody may stop it: a test
    that needs to takes `own_broker`.
    """
    if machine.container_engine_answers():
        yield from _containered()
        return
    jars = request.getfixturevalue("broker_jars")
    with LocalBroker(jars, tmp_path_factory.mktemp("kafka"), java=java_command()) as broker:
        yield broker.bootstrap_servers


def _containered() -> Iterator[str]:
    from testcontainers.community.kafka import KafkaContainer

    container = KafkaContainer().with_kraft()
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    with container:
        yield container.get_bootstrap_server()


@pytest.fixture
def own_broker(broker_jars: list[Path], tmp_path: Path) -> Iterator[LocalBroker]:
    """A running broker that the test may stop, kill and start again."""
    with LocalBroker(broker_jars, tmp_path / "kafka", java=java_command()) as broker:
        yield broker


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name that nobody else uses, telling which test made it."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:80].strip("-")
    return f"{test}.{secrets.token_hex(4)}"


@pytest.fixture
def lakesplice(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line, within this process."""
    # Here, since most processes of a run never need what the command line imports.
    from tests.support.command_line import CommandLine

    return CommandLine(capsys)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The test's seed (`--seed`, else random), printed: a failure shows how to repeat it."""
    given = request.config.getoption("--seed")
    chosen = secrets.randbelow(2**31) if given is None else int(given)
    print(f"seed={chosen}; repeat with: pytest {request.node.nodeid!r} --seed {chosen}")
    return chosen


@pytest.fixture
def bucket_calls(request: pytest.FixtureRequest) -> int:
    """How many calls of a bucket a test is to fail, one after the other; 0 for every one."""
    return int(request.config.getoption("--bucket-calls"))


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SourceServer]:
    """A real MariaDB, shared: tests make databases of their own."""
    yield from source_server(tmp_path_factory.mktemp("mariadb"))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, shared: tests take buckets of their own."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server
