"""Folders of queries: the next process removes those of a killed one, never those of a live one."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lakesplice.spark.kafka.query_folders import QueryFolder, remove_leftovers
from tests.support.running import environment

OTHER = """
import sys
from lakesplice.spark.kafka.query_folders import QueryFolder
folder = QueryFolder()
(folder.path / "offsets").mkdir()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_in_use_stays_and_a_removed_one_leaves_nothing(temporary: Path) -> None:
    folder = QueryFolder()
    assert folder.path.parent == temporary
    assert remove_leftovers() == 0
    assert folder.path.is_dir()
    folder.remove()
    folder.remove()
    assert list(temporary.iterdir()) == []


def test_folders_of_a_killed_process_are_removed_once_it_is_dead(temporary: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), "TMPDIR": str(temporary)},
    ) as other:
        assert other.stdout is not None
        path = Path(other.stdout.readline().strip())
        assert remove_leftovers() == 0
        assert (path / "offsets").is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert remove_leftovers() == 1
    assert list(temporary.iterdir()) == []


def test_folders_of_others_stay(temporary: Path) -> None:
    (temporary / "lakesplice-query-made-by-hand").mkdir()
    assert remove_leftovers() == 0
    assert len(list(temporary.iterdir())) == 1
