"""Which files a version names, and which files nothing needs any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakesplice.model.moments import NO_MOMENT, EpochMs, earlier

if TYPE_CHECKING:  # settings need the numbers alone
    from lakesplice.model.manifest import Manifest

RETENTION_SECONDS = 7 * 86_400.0
LOG_RETENTION_HOURS = round(RETENTION_SECONDS / 3600)
# A reader, a batch or a compaction that began on a version must end before its files are deleted.
RETENTION_SECONDS_MIN = 3_600.0
# Rows deleted this long ago are purged; the clocks of the source and the driver may differ.
PURGE_SECONDS = 7 * 86_400.0
PURGE_SECONDS_MIN = 3_600.0
# A file that no version names may be about to be committed.
ORPHAN_SECONDS_MIN = 86_400.0
# Clocks that differ by less count as equal: file times are coarse, and a comparison takes time.
CLOCK_SECONDS_MAX = 60.0


def deletion_moment(now_ms: EpochMs, store_ahead_seconds: float | None) -> EpochMs:
    """Return the moment from which the age of what may be deleted is counted: the earlier one of
    two clocks, this machine's and the store's.

    `store_ahead_seconds` is how far the store's clock is ahead, below 0 if it is behind. While that
    is unknown (None), nothing is old.
    """
    if store_ahead_seconds is None:
        return NO_MOMENT
    behind = -store_ahead_seconds
    return earlier(now_ms, behind) if behind > CLOCK_SECONDS_MAX else now_ms


def temporaries_before_ms(now_ms: EpochMs) -> EpochMs:
    """Return the moment before which temporary files were written by writers that are dead now."""
    return earlier(now_ms, ORPHAN_SECONDS_MIN)


def files_by_path(manifest: Manifest) -> dict[str, int]:
    """Return every file that a version is read from, except for its manifest, with its size in
    bytes.

    Dead letters count, since people look at them, and so do the images that the version's commit
    added to the change feed. Of a pin only the copy of its manifest counts; the files that it names
    belong to the pinned version.
    """
    refs = [delta.file for delta in manifest.deltas]
    refs += [run.file for run in manifest.runs]
    refs += [letters.file for letters in manifest.dead_letters]
    refs += [pin.copy for pin in manifest.retention.pins]
    refs += manifest.feed.files if manifest.feed is not None else ()
    refs += [manifest.erased.file] if manifest.erased is not None else []
    files = {file.path: file.bytes for file in manifest.files.values()}
    return files | {ref.path: ref.bytes for ref in refs}


def gone_files(expired: Iterable[Manifest], kept: Iterable[Manifest]) -> dict[str, int]:
    """Return the files that expired versions name and no kept version does, in order of name.

    A file's name is never used again, and only a restore uses a file again. So it is enough to look
    at the oldest retained version, the restores, and older pinned versions: a file that another
    retained version names is named by one of these, or was written after the expired versions.
    """
    needed = {path for manifest in kept for path in files_by_path(manifest)}
    found: dict[str, int] = {}
    for manifest in expired:
        found |= files_by_path(manifest)
    return {path: size for path, size in sorted(found.items()) if path not in needed}
