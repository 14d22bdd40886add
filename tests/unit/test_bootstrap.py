"""The decisions of the set-up before it installs anything."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.machine import ROOT


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bootstrap = _load()


@pytest.mark.parametrize(
    ("shown", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1"', 17),
        ("no such thing", None),
    ],
)
def test_the_java_version_is_read_from_what_java_prints(shown: str, major: int | None) -> None:
    assert bootstrap.java_major(shown) == major


def _executable(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def test_without_make_the_message_says_to_install_it(bare_path: Path) -> None:
    with pytest.raises(bootstrap.SetupError, match="make was not found; install it"):
        bootstrap.check_machine()


def test_without_java_the_message_says_to_install_it(bare_path: Path) -> None:
    _executable(bare_path, "make", "exit 0")
    with pytest.raises(bootstrap.SetupError, match="Java was not found; install"):
        bootstrap.check_machine()


def test_an_old_java_is_named_with_the_version_needed(bare_path: Path) -> None:
    _executable(bare_path, "make", "exit 0")
    _executable(bare_path, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    with pytest.raises(bootstrap.SetupError, match="is Java 11, Spark needs 17"):
        bootstrap.check_machine()


def test_java_home_wins_over_the_path(bare_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = bare_path / "jdk"
    (home / "bin").mkdir(parents=True)
    _executable(bare_path, "make", "exit 0")
    _executable(bare_path, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    _executable(home / "bin", "java", "echo 'openjdk version \"21.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert bootstrap.check_machine() == str(home / "bin" / "java")


def test_an_old_python_looks_for_a_newer_one_before_it_gives_up(bare_path: Path) -> None:
    with pytest.raises(bootstrap.SetupError, match="too old and no later one"):
        bootstrap.newer_python()
    _executable(bare_path, "python3.12", "exit 0")
    assert bootstrap.newer_python() == str(bare_path / "python3.12")


def test_entries_of_one_project_stay_together() -> None:
    older = "a==1 ; old \\\n    --hash=sha256:00\n    # via b\n"
    newer = "a==2 ; new \\\n    --hash=sha256:01\n"
    lock = f"{older}{newer}b-c==3\n"
    found = bootstrap.entries(lock)
    assert list(found) == ["a", "b-c"]
    assert found["a"].count("--hash") == 2


def test_every_entry_of_the_lock_has_hashes_and_names_no_index() -> None:
    lock = bootstrap.LOCK.read_text()
    assert "://" not in lock
    assert "index" not in lock
    found = bootstrap.entries(lock)
    assert bootstrap.BUILD_BACKEND in found
    assert [name for name, entry in found.items() if not re.search("--hash=sha256:", entry)] == []


def test_the_stamp_changes_with_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bootstrap.current_stamp()
    assert before == bootstrap.current_stamp()
    other = tmp_path / "requirements.lock"
    other.write_text("other")
    monkeypatch.setattr(bootstrap, "LOCK", other)
    assert bootstrap.current_stamp() != before
