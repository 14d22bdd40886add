"""The log's pointer to the manifest of a version: the configuration of the domain `lakesplice`.

Source: docs/format.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakesplice.errors import CorruptFileError
from lakesplice.formats.manifests.codec import (
    FORMAT,
    MALFORMED,
    require_known_format,
)
from lakesplice.formats.manifests.files import file_in, file_out
from lakesplice.model.manifest import FileRef
from lakesplice.model.moments import EpochMs


@dataclass(frozen=True, slots=True)
class Pointer:
    """What the log's domain `lakesplice` says: which manifest belongs to which version.

    The version is repeated so that a commit by another writer, which would carry the pointer along
    unread, is noticed; the commit's time so that it survives a checkpoint, which holds no commit
    info.
    """

    version: int
    timestamp_ms: EpochMs
    manifest: FileRef


def encode_pointer(pointer: Pointer) -> str:
    """Return the domain's configuration as JSON text."""
    value = {
        "format": FORMAT,
        "version": pointer.version,
        "timestamp_ms": pointer.timestamp_ms,
        "manifest": file_out(pointer.manifest),
    }
    return json.dumps(value, separators=(",", ":"))


def decode_pointer(text: str, path: str) -> Pointer:
    """Read back `encode_pointer`; `CorruptFileError` and `UnsupportedError` as for a manifest."""
    try:
        value = json.loads(text)
        require_known_format(value, path)
        return Pointer(
            int(value["version"]), EpochMs(int(value["timestamp_ms"])), file_in(value["manifest"])
        )
    except MALFORMED as error:
        raise CorruptFileError(
            "the log's pointer to the manifest cannot be read; restore the file",
            path=path,
            pointer=text,
        ) from error
