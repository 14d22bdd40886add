"""What Python workers need: this package, as a zip beside Spark's own files, and what they keep
from one task to the next.

Other packages (pyarrow, polars, obstore and so on) must be in their Python already, by an image or
an archive of an environment; they rarely change. This package must be the driver's, byte for byte,
since tasks exchange pickled values.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from zipimport import zipimporter

from pyspark import SparkFiles
from pyspark.sql import SparkSession

# The whole package, found by its folder: importing its root would import `apps`.
_ROOT = Path(__file__).parents[1]
# The earliest time in a zip file. With a fixed time, equal packages have equal bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_DIGITS = 12


def ship_package(session: SparkSession) -> str:
    """Let the session's executors import this package as it is here; returns the zip's name.

    Blocks for a fraction of a second. May be called again: the same package is sent once.
    """
    context = session.sparkContext
    # Executors fetch the zip from the driver when they join, so it stays as long as the session.
    folder = Path(SparkFiles.getRootDirectory()) / "lakesplice-package"
    folder.mkdir(exist_ok=True)
    archive = pack(folder)
    context.addPyFile(str(archive))
    return archive.name


def pack(folder: Path) -> Path:
    """Write the package's sources into a zip in `folder`, named after their digest; its path."""
    sources = sorted(path for path in _ROOT.rglob("*") if path.is_file() and _belongs(path))
    contents = {path.relative_to(_ROOT.parent).as_posix(): path.read_bytes() for path in sources}
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    archive = folder / f"lakesplice-{digest.hexdigest()[:_DIGITS]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in contents.items():
            packed.writestr(zipfile.ZipInfo(name, _NO_TIME), content, zipfile.ZIP_DEFLATED)
    return archive


def _belongs(path: Path) -> bool:
    return "__pycache__" not in path.parts and path.suffix != ".pyc"


def keep_zip_directories() -> None:
    """Let the worker that calls this keep the directories of the zip files on its path; idempotent.

    Before each task PySpark drops all import caches, so Python 3.11 reads the directories of
    `pyspark.zip` and of Spark's jar again: 50 ms and more per task, longer than a small batch
    takes. A worker's zip files never change; one that is sent later has another name.
    """
    zipimporter.invalidate_caches = _keep  # type: ignore[assignment, method-assign]  # replaced


def _keep(_importer: zipimporter) -> None:
    """Do nothing: the directory that was read stays valid."""
