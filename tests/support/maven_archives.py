"""Archives of whole applications from Maven's central repository, unpacked once beside the jars."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakesplice.spark.jars import _ivy_jar, ivy_settings
from lakesplice.testing.servers.process import java_command

_TOOLS = Path("~/.cache/lakesplice/tools").expanduser()
_FETCH_SECONDS_MAX = 1800


@dataclass(frozen=True)
class MavenArchive:
    """A `tar.gz`, by its coordinates and its SHA-256. `kept` are the folders that are needed of it,
    relative to its root; without any, all of it.
    """

    organisation: str
    name: str
    revision: str
    digest: str
    classifier: str = ""
    kept: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is unpacked."""
        return _TOOLS / f"{self.name}-{self.revision}"


def unpacked(archive: MavenArchive) -> Path:
    """Return the archive's folder, fetched on the first call; a skip where it can't be."""
    folder = archive.folder
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as made:
        scratch = Path(made)
        found = _fetched(archive, scratch)
        with found.open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == archive.digest
        with tarfile.open(found) as packed:
            packed.extractall(scratch / "all", filter="data")
        unpacked = _kept(archive, scratch)
        if not folder.is_dir():
            unpacked.rename(folder)
    return folder


def _fetched(archive: MavenArchive, scratch: Path) -> Path:
    (scratch / "settings.xml").write_text(ivy_settings(scratch / "ivy"))
    (scratch / "ivy.xml").write_text(_module(archive))
    command = [java_command(), f"-Divy.default.ivy.user.dir={scratch / 'home'}", "-jar",
               str(_ivy_jar()), "-settings", "settings.xml", "-ivy", "ivy.xml"]  # fmt: skip
    try:
        subprocess.run(
            command, cwd=scratch, check=True, capture_output=True, timeout=_FETCH_SECONDS_MAX
        )
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no {archive.name}: {error}")
    # Ivy retrieves no archives, whatever types it is given; its cache has them.
    archives = [*(scratch / "ivy").rglob(f"{archive.name}-{archive.revision}*.tar.gz")]
    if not archives:
        pytest.skip(f"no {archive.name}: Ivy fetched nothing")
    return archives[0]


def _module(archive: MavenArchive) -> str:
    classifier = f' m:classifier="{archive.classifier}"' if archive.classifier else ""
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="lakesplice" module="{archive.name}-archive"/>
<configurations><conf name="default"/></configurations>
<dependencies><dependency org="{archive.organisation}" name="{archive.name}"
 rev="{archive.revision}" transitive="false" conf="default->default">
<artifact name="{archive.name}" type="tar.gz" ext="tar.gz"{classifier}/>
</dependency></dependencies></ivy-module>"""


def _kept(archive: MavenArchive, scratch: Path) -> Path:
    everything = scratch / "all"
    if not archive.kept:
        return everything
    (root,) = everything.iterdir()
    for part in archive.kept:
        to = scratch / "kept" / part
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(root / part, to)
    return scratch / "kept"
