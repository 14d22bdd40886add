"""An archive of Spark's classes: a JVM that is started with it takes them from there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakesplice.spark.class_archive import make_archive, use_archive
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars, folder_of

SECONDS_MAX = 240
SESSION = """
import sys
from lakesplice.spark.session import build_session
build_session("local[1]", "512m", [], {}, java_options=sys.argv[1]).range(3).collect()
"""


# Two more JVMs: the image test, which is nightly as well, starts the service with one.
@pytest.mark.nightly
def test_classes_come_from_the_archive_and_one_cut_off_is_not_used(tmp_path: Path) -> None:
    ensure_jars(SPARK_KAFKA)
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / SPARK_KAFKA.folder_name).symlink_to(folder_of(SPARK_KAFKA))
    assert not use_archive(jars)
    archive = make_archive(jars)
    assert str(archive) in use_archive(jars)

    def loaded(name: str) -> str:
        log = tmp_path / name
        options = f"{use_archive(jars)} -Xlog:class+load:file={log}"
        command = [sys.executable, "-c", SESSION, options]
        done = subprocess.run(command, timeout=SECONDS_MAX, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        lines = log.read_text().splitlines()
        (context,) = [line for line in lines if "org.apache.spark.SparkContext source:" in line]
        return context

    assert "shared objects file (top)" in loaded("with")
    archive.chmod(0o600)
    archive.write_bytes(archive.read_bytes()[: 1 << 20])
    assert not use_archive(jars)
