"""What this machine can run. Each function returns the program or folder, or skips the test with a
reason.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from lakesplice.errors import ConfigurationError, RetryableError
from lakesplice.spark.jars import JarSet, ensure_jars
from lakesplice.testing.servers.process import java_command

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
        return ensure_jars(which, Path(cache) if cache else None, java=java_command())
    except (ConfigurationError, RetryableError) as error:
        pytest.skip(f"no {which.name} jars: {error.message}")


def java_of(release: int) -> str:
    """The command of a Java of this release or a later one: the usual one, one that a variable such
    as `JAVA_HOME_25_X64` names, or one that is installed beside the usual one.
    """
    usual = shutil.which(java_command())
    homes = [Path(usual).resolve().parents[1]] if usual else []
    homes += [Path(home) for name, home in os.environ.items() if name.startswith("JAVA_HOME")]
    homes += sorted(homes[0].parent.iterdir(), reverse=True) if homes else []
    found = next((home for home in homes if _release_of(home) >= release), None)
    if found is None:
        pytest.skip(f"no Java {release} (install one, and name its folder in JAVA_HOME_{release})")
    return str(found / "bin" / "java")


def _release_of(home: Path) -> int:
    """The release of the Java in a folder, by the file that each has; 0 if none is there."""
    about = home / "release"
    found = re.search(r'^JAVA_VERSION="(\d+)', about.read_text(), re.M) if about.is_file() else None
    return int(found[1]) if found and (home / "bin" / "java").is_file() else 0


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
