"""One version of a table, read by its commit alone: its time, its operation and its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakesplice.errors import MissingFileError, UnsupportedError, VersionNotFoundError
from lakesplice.formats.log.actions import DOMAIN, Action, CommitInfo, DomainMetadata
from lakesplice.formats.log.commit_file import decode_commit
from lakesplice.formats.manifests import decode_pointer
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import read_manifest


@dataclass(frozen=True)
class Version:
    """A committed version: its time, its operation, and its manifest."""

    number: int
    operation: str
    timestamp_ms: EpochMs
    manifest: Manifest


def read_version(store: Store, number: int) -> Version:
    """Read one version by its commit alone; `VersionNotFoundError` if it isn't retained."""
    path = commit_path(number)
    try:
        actions = decode_commit(store.read(path), path)
    except MissingFileError:
        raise VersionNotFoundError(
            "the version is past its retention, or doesn't exist yet; begin with a later one",
            version=number,
        ) from None
    domain = next(_domains(actions), None)
    pointer = None if domain is None else decode_pointer(domain.configuration, path)
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    if pointer is None or pointer.version != number or info is None:
        raise UnsupportedError(
            "a commit of another writer can't be read as changes", version=number
        )
    return Version(
        number, info.operation, pointer.timestamp_ms, read_manifest(store, pointer.manifest)
    )


def _domains(actions: Sequence[Action]) -> Iterator[DomainMetadata]:
    return (a for a in actions if isinstance(a, DomainMetadata) and a.domain == DOMAIN)
