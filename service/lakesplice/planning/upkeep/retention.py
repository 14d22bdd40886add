"""Which files a version names, and which of them nothing needs any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings need the numbers alone
    from lakesplice.model.manifest import Manifest

RETENTION_SECONDS = 7 * 86_400.0
# A reader, a batch or a compaction that began on a version must end before its files may go.
RETENTION_SECONDS_MIN = 3_600.0
# Rows deleted so long ago leave base files for good; the clocks of source and driver may differ.
PURGE_SECONDS = 7 * 86_400.0
PURGE_SECONDS_MIN = 3_600.0
# A file that no version names may be about to be committed.
ORPHAN_SECONDS_MIN = 86_400.0


def temporaries_before_ms(now_ms: int) -> int:
    """Return the moment before which a file that is still being written belongs to nobody alive."""
    return now_ms - int(ORPHAN_SECONDS_MIN * 1000)


def files_by_path(manifest: Manifest) -> dict[str, int]:
    """Return every file that a version is read from, but for its manifest, with its size in bytes.

    Dead letters count: they are there to be looked at. Of a pin the copy of its manifest counts;
    what that names is the pinned version's.
    """
    refs = [delta.file for delta in manifest.deltas]
    refs += [run.file for run in manifest.runs]
    refs += [letters.file for letters in manifest.dead_letters]
    refs += [pin.copy for pin in manifest.retention.pins]
    files = {file.path: file.bytes for file in manifest.files.values()}
    return files | {ref.path: ref.bytes for ref in refs}


def gone_files(expired: Iterable[Manifest], kept: Iterable[Manifest]) -> dict[str, int]:
    """Return the files that expired versions name and no kept one does, in the order of names.

    A file's name is never used again, and only a restore uses a file again. So of the retained
    versions the oldest one, the restores and the older ones that are pinned are enough to keep:
    what any other names is named by one of these, or was written later than the expired versions.
    """
    needed = {path for manifest in kept for path in files_by_path(manifest)}
    found: dict[str, int] = {}
    for manifest in expired:
        found |= files_by_path(manifest)
    return {path: size for path, size in sorted(found.items()) if path not in needed}
