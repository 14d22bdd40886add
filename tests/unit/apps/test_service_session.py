"""The start of the service's JVM, which nothing waits for until its session is opened."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
import yaml

from lakesplice.apps.service_session import begin_jvm, open_session
from lakesplice.errors import ConfigurationError
from tests.support.service_settings import settings_of

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


@pytest.mark.slow
def test_a_service_that_ends_at_once_leaves_no_properties_behind(tmp_path: Path) -> None:
    """4 s: the JVM reads them, and only a process of its own ends while it starts."""
    scratch, lake, config = (tmp_path / name for name in ("scratch", "lake", "config.yaml"))
    scratch.mkdir()
    lake.write_bytes(b"no folder")
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": "shop.*"}
    options = {"spark.hadoop.secret": "hunter2"}
    given = {
        "lake": {"root": str(lake)},
        "kafka": kafka,
        "spark": {"options": options},
        "metrics": {"enabled": False},
    }
    config.write_text(yaml.safe_dump(given))
    done = subprocess.run(
        [*COMMAND, "run", "--config", str(config)],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode
    assert str(lake) in done.stderr
    assert not [path for path in scratch.rglob("*") if b"hunter2" in _content(path)]
    assert not list(scratch.glob("lakesplice-spark-*"))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
