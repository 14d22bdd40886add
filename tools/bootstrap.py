"""Makes this checkout ready to run: `.venv` from requirements.lock, then the jars.

Only the standard library, and syntax that old Pythons parse, so that a machine with the wrong
Python gets a sentence instead of a traceback. A second run compares one hash and returns.

LAKESPLICE_SPARK__JARS_DIR names the folder of the jars, as it does for the service.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".bootstrap"
PYTHON_MIN = (3, 11)
JAVA_MIN = 17
NEWER_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")
# PySpark comes as source; what builds it is pinned in the lock too and must be there before it.
BUILD_BACKEND = "setuptools"


class SetupError(Exception):
    """The machine lacks something; the message says what to do."""


def main() -> int:
    """Run every step that isn't done yet; 0 when the checkout is ready."""
    try:
        if sys.version_info < PYTHON_MIN:
            return _run_again_with(newer_python())
        stamp = current_stamp()
        if STAMP.is_file() and STAMP.read_text() == stamp:
            return 0
        _set_up(stamp)
    except SetupError as error:
        print(f"setup stopped: {error}", file=sys.stderr)
        return 1
    return 0


def _set_up(stamp: str) -> None:
    java = check_machine()
    _say(f"Python {platform.python_version()}, Java at {java}: good")
    STAMP.unlink() if STAMP.exists() else None
    _make_venv()
    lock = LOCK.read_text(encoding="utf-8")
    count = len(entries(lock))
    _say(f"installing {count} pinned packages (the first time, some 800 MB and 2 minutes)")
    _install_entry(lock, BUILD_BACKEND)
    _pip("--require-hashes", "--no-build-isolation", "-r", str(LOCK))
    _say("installing lakesplice itself, editable")
    _pip("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    _say("fetching jars that aren't there yet (the first time, 60 MB and a minute)")
    arguments = [os.environ.get("LAKESPLICE_SPARK__JARS_DIR") or "~/.cache/lakesplice/jars", java]
    _run("the jars", [str(venv_python()), "-m", "lakesplice.spark.jars", *arguments])
    STAMP.write_text(stamp)
    _say("ready")


def current_stamp() -> str:
    """A hash of everything that decides what the setup makes."""
    digest = hashlib.sha256(platform.python_version().encode())
    parts = (
        LOCK,
        ROOT / "pyproject.toml",
        ROOT / "service/lakesplice/spark/jars.py",
        Path(__file__),
    )
    for path in parts:
        digest.update(path.read_bytes())
    digest.update(str(ROOT).encode())
    return digest.hexdigest()


def check_machine() -> str:
    """Return the command of a Java that is new enough; `SetupError` if anything is missing."""
    if shutil.which("make") is None:
        raise SetupError("make was not found; install it (Debian: apt-get install make)")
    java = java_command()
    if shutil.which(java) is None:
        raise SetupError(
            f"Java was not found; install a JDK or JRE of {JAVA_MIN} or later"
            " (Debian: apt-get install openjdk-17-jre-headless) and put it on the PATH,"
            " or set JAVA_HOME"
        )
    shown = subprocess.run([java, "-version"], capture_output=True, text=True)
    found = java_major(shown.stderr + shown.stdout)
    if found is None or found < JAVA_MIN:
        raise SetupError(
            f"{java} is Java {found or 'of an unknown version'}, Spark needs {JAVA_MIN} or later;"
            " install one (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME to it"
        )
    return java


def java_command() -> str:
    """The Java that PySpark will use: JAVA_HOME's, else the PATH's."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def java_major(shown: str) -> int | None:
    """The major version in what `java -version` prints; 8 for the old `1.8` style."""
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(match.group(1)) if match else None


def entries(lock: str) -> dict[str, str]:
    """The lock's requirements by project name, each with its hashes; all its markers together."""
    found: dict[str, str] = {}
    for entry in re.split(r"(?m)^(?=[A-Za-z0-9])", lock):
        name = re.match(r"[A-Za-z0-9._-]+", entry)
        if name:
            found[name.group()] = found.get(name.group(), "") + entry
    return found


def newer_python() -> str:
    """Another Python on the PATH that is new enough; `SetupError` if there is none."""
    for name in NEWER_PYTHONS:
        path = shutil.which(name)
        if path:
            return path
    raise SetupError(
        f"Python {platform.python_version()} is too old and no later one is on the PATH;"
        f" install Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or later, or name it: make PYTHON=…"
    )


def _run_again_with(python: str) -> int:
    return subprocess.run([python, str(Path(__file__).resolve())]).returncode


def venv_python() -> Path:
    """The virtual environment's interpreter."""
    return VENV / "bin" / "python"


def _make_venv() -> None:
    if venv_python().exists() and _venv_version() == platform.python_version():
        return
    _say("making the virtual environment .venv")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True
    )
    if made.returncode:
        raise SetupError(
            "the virtual environment could not be made; Python's venv module may be missing"
            f" (Debian: apt-get install python3-venv)\n{made.stdout}{made.stderr}"
        )


def _venv_version() -> str:
    code = "import platform; print(platform.python_version())"
    shown = subprocess.run([str(venv_python()), "-c", code], capture_output=True, text=True)
    return shown.stdout.strip()


def _install_entry(lock: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        requirement = Path(folder, "requirement.txt")
        requirement.write_text(entries(lock)[name], encoding="utf-8")
        _pip("--require-hashes", "-r", str(requirement))


def _pip(*arguments: str) -> None:
    pip = [str(venv_python()), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run("the packages", [*pip, *arguments])


def _run(what: str, command: list[str]) -> None:
    if subprocess.run(command, cwd=str(ROOT)).returncode:
        raise SetupError(f"{what} could not be installed, see above; run it again once mended")


def _say(sentence: str) -> None:
    print(f"setup: {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
