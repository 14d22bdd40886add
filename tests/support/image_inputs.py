"""A digest of everything that goes into the image: while it is unchanged, the results of the
image's tests hold.

Building the image and running the service in it takes minutes, so `make nightly` does it. The last
test of `tests/e2e/test_image.py` writes the digest of the tested inputs; a unit test in the gate
checks that they haven't changed since. The package's own code isn't part of it: every other test
runs that.
"""

from __future__ import annotations

import ast
import hashlib
import tomllib
from pathlib import Path

from runtime_lock import named, runtime_names
from tests.support import machine

PROVED = machine.ROOT / "tests" / "e2e" / "image.sha256"
_FILES = (
    "Dockerfile",
    "tools/runtime_lock.py",
    "service/lakesplice/spark/jars.py",
    "service/lakesplice/spark/class_archive.py",
)


def digest() -> str:
    """The SHA-256 of the Dockerfile, the run-time packages, the jars and the rules of the build."""
    lock = (machine.ROOT / "requirements.lock").read_text()
    project = tomllib.loads((machine.ROOT / "pyproject.toml").read_text())
    inputs = [
        *(_meaning(machine.ROOT / name) for name in _FILES),
        _without_comments(named(lock, runtime_names(lock) | {"setuptools"})),
        repr(project["build-system"]),
        repr(project["project"]["scripts"]),
    ]
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()


def _without_comments(lock: str) -> str:
    """The entries of a lock, but not who asked for them: some of these are for developers only."""
    return "".join(line for line in lock.splitlines(keepends=True) if "#" not in line)


def _meaning(path: Path) -> str:
    """What a file says to the machine: of a module neither comments nor docstrings."""
    text = path.read_text()
    if path.suffix != ".py":
        return text
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body[0] = ast.Pass()
    return ast.unparse(module)


def proved() -> str:
    """The digest of the image that was last built and run."""
    return PROVED.read_text().strip() if PROVED.exists() else ""


def record() -> None:
    """Write down that the image of today was built and run."""
    PROVED.write_text(f"{digest()}\n")
