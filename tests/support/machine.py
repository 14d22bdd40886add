"""What this machine can run. Each function returns the program or folder, or skips the test with a
reason.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakesplice.errors import ConfigurationError, RetryableError
from lakesplice.spark.jars import JarSet, ensure_jars

ROOT = Path(__file__).resolve().parents[2]
JARS_DIR = "LAKESPLICE_SPARK__JARS_DIR"


def shared_dir(*parts: str) -> Path:
    """A folder of the shared corpora and captures: SHARED_CORPORA, else beside the checkout."""
    # Resolved, since readers answer with real paths.
    shared = Path(os.environ.get("SHARED_CORPORA") or ROOT.parent / "shared").resolve()
    wanted = shared.joinpath(*parts)
    if not wanted.exists():
        pytest.skip(f"no shared corpora: {'/'.join(parts)} (set SHARED_CORPORA to their folder)")
    return wanted


def jars(which: JarSet) -> list[Path]:
    """The set's jars, from the folder that the settings name or the usual cache."""
    cache = os.environ.get(JARS_DIR)
    try:
        return ensure_jars(which, Path(cache) if cache else None, java=java())
    except (ConfigurationError, RetryableError) as error:
        pytest.skip(f"no {which.name} jars: {error.message}")


def java() -> str:
    """The command of the Java that PySpark would use too."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def container_engine_answers() -> bool:
    """Whether a container engine can be reached from here."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=3)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()
