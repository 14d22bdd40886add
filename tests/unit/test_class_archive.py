"""With which archive of classes a JVM is started."""

from __future__ import annotations

from pathlib import Path

import pyspark

from lakesplice.spark.class_archive import making_command, use_archive


def test_an_archive_of_this_spark_is_used_if_it_is_whole(tmp_path: Path) -> None:
    assert use_archive(tmp_path) == ""
    assert use_archive(tmp_path / "absent") == ""
    archive = tmp_path / f"classes-of-spark-{pyspark.__version__}-5.jsa"
    archive.write_bytes(b"whole")
    assert use_archive(tmp_path).startswith(f"-XX:SharedArchiveFile={archive} ")
    archive.write_bytes(b"cut")
    assert use_archive(tmp_path) == ""
    archive.rename(tmp_path / "classes-of-spark-0.1-3.jsa")
    assert use_archive(tmp_path) == ""


def test_the_command_that_makes_an_archive_names_the_folder_of_the_jars() -> None:
    assert making_command() == "python -m lakesplice.spark.class_archive"
    assert making_command(Path("my jars")).endswith(" 'my jars'")
