"""The image, built by buildah and run without an engine: its own command, as its own user."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakesplice.telemetry.memory import Process, descendants, processes
from tests.support.machine import ROOT

_BUILD_SECONDS_MAX, _RUN_SECONDS_MAX = 1800.0, 600.0
# Neither an engine nor a mount of overlays is to be had everywhere.
_HOW = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}


class Image:
    """An image of this checkout; `base` takes the place of the Dockerfile's own."""

    def __init__(self, base: str) -> None:
        self.name = _buildah(
            *("build", "--quiet", "--build-arg", f"PYTHON_IMAGE={base}", str(ROOT)),
            seconds_max=_BUILD_SECONDS_MAX,
        ).strip()

    def settings(self) -> dict[str, Any]:
        """What the image says of itself: its user, entry point, command and variables."""
        about = json.loads(_buildah("inspect", "--type", "image", self.name))
        settings: dict[str, Any] = about["OCIv1"]["config"]
        return settings

    @contextmanager
    def container(self) -> Iterator[Container]:
        """A container of it, removed when the block ends."""
        name = _buildah("from", self.name).strip()
        try:
            yield Container(name, self.settings()["Entrypoint"])
        finally:
            _buildah("rm", name)


class Container:
    """What the image's entry point is given, with folders of this machine mounted into it."""

    def __init__(self, name: str, entrypoint: Sequence[str]) -> None:
        self.name = name
        self._entrypoint = entrypoint

    def shell(self, line: str, *, user: str) -> str:
        """What a line of shell prints in it; user 0 is root."""
        return _buildah("run", "--user", user, self.name, "--", "sh", "-c", line)

    def run(
        self, *arguments: str, mounts: Mapping[Path, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the entry point to its end."""
        command = self._command(arguments, mounts or {})
        return subprocess.run(
            command, capture_output=True, text=True, env=_environment(), timeout=_RUN_SECONDS_MAX
        )

    @contextmanager
    def running(
        self, *arguments: str, mounts: Mapping[Path, str], log: Path
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The entry point while the block runs; whatever is left of it then is killed."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command(arguments, mounts),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(),
                start_new_session=True,
            )
        try:
            yield process
        finally:
            for one in reversed(descendants(processes(), process.pid)):
                os.kill(one.pid, signal.SIGKILL)
            process.wait()

    def init(self, process: subprocess.Popen[bytes]) -> Process:
        """The container's first process, which an engine would signal."""
        (first,) = (one for one in descendants(processes(), process.pid) if one.command == "tini")
        return first

    def _command(self, arguments: Sequence[str], mounts: Mapping[Path, str]) -> list[str]:
        volumes = [f"--volume={source}:{target}" for source, target in mounts.items()]
        return ["buildah", "run", *volumes, self.name, "--", *self._entrypoint, *arguments]


def image(base: str | None) -> Image:
    """The image on this base; a skip by name where none is given or nothing can build it."""
    if base is None:
        pytest.skip("the image is built only when asked for (--image-base)")
    if shutil.which("buildah") is None:
        pytest.skip("no buildah to build the image with")
    return Image(base)


def _environment() -> dict[str, str]:
    return {**_HOW, **os.environ}


def _buildah(*arguments: str, seconds_max: float = _RUN_SECONDS_MAX) -> str:
    done = subprocess.run(
        ["buildah", *arguments],
        capture_output=True,
        text=True,
        env=_environment(),
        timeout=seconds_max,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    return done.stdout
