"""Debian's packages, unpacked without being installed, and a small Debian made of them."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakesplice.testing.go_programs import folder_of, publish

RELEASE = "bookworm"
_FETCH_SECONDS_MAX, _MAKE_SECONDS_MAX = 300.0, 900.0
# As much as the Dockerfile asks of its base.
_PYTHON = "python3,python3-venv,ca-certificates"


def unpacked(name: str, packages: Sequence[str], *, needs: bool = False) -> Path:
    """The folder `name` with the packages' files, fetched once; a skip where they can't be had.

    With `needs` also what they depend on and the machine hasn't got.
    """
    folder = folder_of(name)
    if not folder.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip(f"no {packages[0]} (install it, or run on Debian)")
        with _scratch(folder) as scratch:
            _unpack(packages, scratch, needs=needs)
            publish(scratch, folder)
    return folder


def small_debian() -> Path:
    """An archive of a Debian with Python, made once; a skip where none can be made."""
    archive = folder_of(f"debian-{RELEASE}") / "debian.tar"
    if not archive.exists():
        if os.geteuid() != 0:
            pytest.skip("no Debian for an image can be made (only root can)")
        tools = unpacked("debootstrap", ["debootstrap"])
        with _scratch(archive.parent) as scratch:
            root = scratch / "root"
            command = [str(tools / "usr" / "sbin" / "debootstrap"), "--variant=minbase"]
            try:
                _run(
                    [*command, f"--include={_PYTHON}", RELEASE, str(root)],
                    _MAKE_SECONDS_MAX,
                    DEBOOTSTRAP_DIR=str(tools / "usr" / "share" / "debootstrap"),
                )
            except subprocess.SubprocessError as error:
                pytest.skip(f"no Debian for an image can be made ({_told(error)})")
            pack = ["tar", "--create", f"--file={scratch / archive.name}", f"--directory={root}"]
            _run([*pack, "--numeric-owner", "."], _MAKE_SECONDS_MAX)
            shutil.rmtree(root)
            publish(scratch, archive.parent)
    return archive


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder beside this one, gone in the end unless it was published."""
    scratch = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unpack(packages: Sequence[str], folder: Path, *, needs: bool) -> None:
    """Unpack packages below `folder`, with lists of our own if the machine has none."""
    state = folder / "apt"
    (state / "lists" / "partial").mkdir(parents=True)
    (state / "archives" / "partial").mkdir(parents=True)
    own = [
        *("-o", f"Dir::State::Lists={state / 'lists'}"),
        *("-o", f"Dir::Cache={state}"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    reason = "apt-get has none"
    try:
        for options in ([], own):
            if options:
                _run(["apt-get", *options, "--quiet", "update"], _FETCH_SECONDS_MAX)
            wanted = _with_needs(packages, options) if needs else packages
            command = ["apt-get", *options, "--quiet", "download", *wanted]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=_FETCH_SECONDS_MAX
            )
            archives = sorted(folder.glob("*.deb"))
            if done.returncode == 0 and len(archives) == len(wanted):
                for archive in archives:
                    _run(["dpkg-deb", "--extract", str(archive), str(folder)], _FETCH_SECONDS_MAX)
                    archive.unlink()
                shutil.rmtree(state)
                return
    except (subprocess.SubprocessError, OSError) as error:
        reason = _told(error)
    pytest.skip(f"no {packages[0]} package ({reason})")


def _with_needs(packages: Sequence[str], options: Sequence[str]) -> list[str]:
    """The packages, and what an installation of them would install beside them."""
    command = ["apt-get", *options, "--simulate", "--no-install-recommends", "install", *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS_MAX)
    lines = (line.split() for line in done.stdout.splitlines())
    found = {words[1] for words in lines if words[:1] == ["Inst"]}
    return sorted(found | set(packages))


def _told(error: Exception) -> str:
    """The last line that a command printed, else the kind of error."""
    output = error.output if isinstance(error, subprocess.CalledProcessError) else None
    lines = (output or b"").decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), type(error).__name__)


def _run(command: list[str], seconds_max: float, **variables: str) -> None:
    environment = {**os.environ, **variables}
    subprocess.run(command, check=True, capture_output=True, timeout=seconds_max, env=environment)
