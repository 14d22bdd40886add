"""An archive of the classes that Spark loads at each start.

A JVM maps it into memory instead of loading some ten thousand classes one by one. It is Java's own
class-data sharing (JEP 350). The archive fits one installation of Java and Spark; with another one
the JVM ignores it and loads its classes as usual.

    python -m lakesplice.spark.class_archive [JARS_DIR]
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from lakesplice.errors import ConfigurationError
from lakesplice.spark.jars import DEFAULT_CACHE, SPARK_KAFKA, ensure_jars
from lakesplice.spark.session import build_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SECONDS_MAX = 300.0


def use_archive(jars_dir: Path | None = None) -> str:
    """Return the option with which a JVM uses the archive; empty if there is no archive.

    The archive's name contains its size, since a truncated archive would crash the JVM.
    """
    whole = [path for path in _archives(jars_dir) if path.name == _name(path.stat().st_size)]
    # An archive of another Java needs no warning: the JVM works without it.
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return f"-XX:SharedArchiveFile={whole[0]} {quiet}" if whole else ""


def making_command(jars_dir: Path | None = None) -> str:
    """Return the command line that makes the archive beside these jars."""
    command = f"python -m {__name__}"
    return f"{command} {shlex.quote(str(jars_dir))}" if jars_dir else command


def make_archive(jars_dir: Path | None = None) -> Path:
    """Make the archive in another process, which runs a small query, and return its path.

    Blocks for some 20 seconds. `ConfigurationError` if Java or Spark don't start.
    """
    home = _home(jars_dir)
    home.mkdir(parents=True, exist_ok=True)
    ensure_jars(SPARK_KAFKA, jars_dir)
    with tempfile.TemporaryDirectory(dir=home, prefix=".classes-") as folder:
        made = Path(folder, "classes.jsa")
        command = [sys.executable, "-m", __spec__.name, "--record", str(made)]
        done = subprocess.run(
            [*command, *([str(jars_dir)] if jars_dir else [])],
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
            # A machine that builds an image may have a host name that can't be resolved.
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        if done.returncode or not made.exists():
            raise ConfigurationError(
                "the archive of classes could not be made", reason=done.stderr.strip()[-2000:]
            )
        archive = home / _name(made.stat().st_size)
        made.replace(archive)
    for other in _archives(jars_dir):
        if other != archive:
            other.unlink()
    return archive


def _home(jars_dir: Path | None) -> Path:
    """The folder of the archive, beside the jars."""
    return (jars_dir or DEFAULT_CACHE).expanduser()


def _name(size: int | str) -> str:
    return f"classes-of-spark-{pyspark.__version__}-{size}.jsa"


def _archives(jars_dir: Path | None) -> list[Path]:
    return sorted(_home(jars_dir).glob(_name("*")))


def _record(archive: Path, jars_dir: Path | None) -> None:
    """Load the classes that a service loads, in a JVM that writes the archive when it ends."""
    session = build_session(
        "local[2]",
        "1g",
        ensure_jars(SPARK_KAFKA, jars_dir),
        {"spark.sql.shuffle.partitions": "2"},
        java_options=f"-XX:ArchiveClassesAtExit={archive}",
    )
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()

    def take(batch: DataFrame, _: int) -> None:
        as_it_is = batch.mapInArrow(lambda batches: batches, batch.schema)
        as_it_is.repartition(2, "value").sortWithinPartitions("value").collect()

    query = rows.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination(int(_SECONDS_MAX))
    session.stop()


def main(arguments: list[str]) -> int:
    """Make the archive beside the jars of the given folder, by default the cache."""
    if arguments[:1] == ["--record"]:
        _record(Path(arguments[1]), Path(arguments[2]) if arguments[2:] else None)
        return 0
    try:
        print(f"  {make_archive(Path(arguments[0]) if arguments else None)}")
    except ConfigurationError as error:
        print(f"  {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
