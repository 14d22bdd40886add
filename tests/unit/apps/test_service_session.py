"""The start of the service's JVM, which nothing waits for until its session is opened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from lakesplice.apps.service_session import begin_jvm, open_session
from lakesplice.errors import ConfigurationError
from tests.support.service_settings import settings_of
from tests.support.waiting import until

SECRET = "hunter2"
COMMAND = [sys.executable, "-c", "from lakesplice.apps.cli import main; main()"]
READS_SETTINGS = """
import sys
from lakesplice.apps.cli import service
from lakesplice.config import load
import lakesplice.apps.service_session
late = {"pyarrow", "polars", "deltalake", "lakesplice.formats", "lakesplice.splicing"}
sys.exit(f"imported: {late & set(sys.modules)}" if late & set(sys.modules) else 0)
"""


def test_no_jvm_is_started_early_if_its_jars_have_to_be_fetched(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    spark = settings.spark.model_copy(update={"jars_dir": str(tmp_path / "jars")})
    assert begin_jvm(settings.model_copy(update={"spark": spark})) is None


def test_what_prevented_the_jvm_reaches_who_opens_the_session(tmp_path: Path) -> None:
    failed: Future[None] = Future()
    failed.set_exception(ConfigurationError("Java did not start"))
    with pytest.raises(ConfigurationError, match="Java did not start"):
        open_session(settings_of(tmp_path), failed)


@pytest.mark.slow
def test_the_jvm_starts_before_what_reads_events_is_imported() -> None:
    """Half a second: only a process of its own shows what is imported."""
    done = subprocess.run(
        [sys.executable, "-c", READS_SETTINGS], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Started:
    """A service with a secret among Spark's options, and its folder for temporary files."""

    process: subprocess.Popen[str]
    scratch: Path

    def leaves_nothing(self) -> bool:
        """Whether no file has the secret, once the service has ended."""
        _, said = self.process.communicate(timeout=120)
        assert self.process.returncode, said
        files = [path for path in self.scratch.rglob("*") if path.is_file()]
        return not [path for path in files if SECRET in path.read_text(errors="replace")]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[Path], Started]]:
    """Starts a service of a lake."""
    with ExitStack() as running:

        def start(lake: Path) -> Started:
            scratch, config = tmp_path / "scratch", tmp_path / "config.yaml"
            scratch.mkdir()
            given = {
                "lake": {"root": str(lake)},
                "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": "shop.*"},
                "spark": {"options": {"spark.hadoop.secret": SECRET}},
                "metrics": {"enabled": False},
            }
            config.write_text(yaml.safe_dump(given))
            process = subprocess.Popen(
                [*COMMAND, "run", "--config", str(config)],
                env={**os.environ, "TMPDIR": str(scratch)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            running.callback(process.kill)
            return Started(process, scratch)

        yield start


@pytest.mark.slow
def test_a_service_that_fails_at_once_leaves_no_properties_behind(
    tmp_path: Path, started: Callable[[Path], Started]
) -> None:
    """3 s: only a process of its own ends while its JVM starts."""
    lake = tmp_path / "lake"
    lake.write_bytes(b"no folder")
    assert started(lake).leaves_nothing()


@pytest.mark.slow
def test_nor_does_one_that_is_asked_to_stop_while_its_jvm_starts(
    tmp_path: Path, started: Callable[[Path], Started]
) -> None:
    """2 s, for the same reason."""
    service = started(tmp_path / "lake")
    until(lambda: any(service.scratch.glob("lakesplice-spark-*/*")), "there are properties")
    service.process.terminate()
    assert service.leaves_nothing()
