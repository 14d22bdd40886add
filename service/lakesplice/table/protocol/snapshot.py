"""Snapshots: the log and the manifest of one version, proven to belong together.

The hint in `_last_checkpoint` names the newest checkpoint; the versions after it are looked up by
name. The folder is listed only if there is no usable hint, or for a version before it. Looking up
from another version would be wrong: a clean-up that was interrupted leaves gaps, and the first
missing version is the end of the log only above a checkpoint or a version that is retained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakesplice.errors import (
    CorruptFileError,
    ForeignCommitError,
    MissingFileError,
    TableNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lakesplice.formats.checksum import verify
from lakesplice.formats.log.actions import DOMAIN, FEATURE, KNOWN_FEATURES, Action, DomainMetadata
from lakesplice.formats.log.checkpoint import (
    Checkpoint,
    complete_checkpoints,
    decode_hint,
    read_checkpoint,
)
from lakesplice.formats.log.commit_file import decode_commit
from lakesplice.formats.log.state import LogState, replay, start
from lakesplice.formats.manifests import Pointer, decode_manifest, decode_pointer
from lakesplice.model.manifest import FileRef, Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.layout import LAST_CHECKPOINT, LOG, commit_path, commit_version
from lakesplice.table.protocol.ports import Store

Commit = tuple[int, Sequence[Action]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one version. `timestamp_ms` is the commit's own time, which rises with the
    versions.
    """

    version: int
    timestamp_ms: EpochMs
    log: LogState
    manifest: Manifest


def open_snapshot(store: Store, version: int | None = None) -> Snapshot:
    """Return the table's state at `version`, or at its newest one.

    Blocks: reads; never returns a part of a state. `TableNotFoundError` if the folder has no table
    of Lakesplice, `VersionNotFoundError` for a version that doesn't exist or is past its retention,
    `CorruptFileError` for a damaged or missing file.
    """
    return _with_manifest(store, read_log(store, version))


def find_snapshot(store: Store) -> Snapshot | None:
    """Return the table's newest version; None if there is no table. Blocks; otherwise errors as
    `open_snapshot`.
    """
    try:
        return open_snapshot(store)
    except TableNotFoundError:
        return None


def open_retained(store: Store, newest: Snapshot, version: int) -> Snapshot:
    """Open a version that is still retained by the newest one; `VersionNotFoundError` if it is
    past its retention or doesn't exist. Blocks.
    """
    oldest = newest.manifest.retention.retained_from
    if version < oldest:
        raise VersionNotFoundError(
            "the version is past its retention, its files are deleted",
            version=version,
            oldest=oldest,
        )
    return open_snapshot(store, version)


def read_log(store: Store, version: int | None = None) -> LogState:
    """Return what the log of any Delta table says at `version`, or at its newest one, without a
    manifest.

    Errors as in `open_snapshot`, and `UnsupportedError` for a table that needs a newer reader.
    """
    state = _from_hint(store) if version is None else None
    return _from_listing(store, version) if state is None else state


def latest(store: Store, known: Snapshot) -> Snapshot:
    """Return the newest version by reading only the commits after `known`, without listing."""
    state = replay(known.log, _probe(store, known.version + 1))
    if state is known.log:
        # The end of the log, unless `known` is so old that later versions were cleaned up, too.
        retained = store.size(commit_path(known.version)) is not None
        return known if retained else open_snapshot(store)
    return _with_manifest(store, state)


def manifest_ref(snapshot: Snapshot) -> FileRef:
    """Return the manifest's file."""
    configuration = snapshot.log.domains[DOMAIN].configuration
    return decode_pointer(configuration, commit_path(snapshot.version)).manifest


def within_retention(store: Store, snapshot: Snapshot, rows: Iterator[T]) -> Iterator[T]:
    """Return what `read` returns; `VersionNotFoundError` if the version's files were vacuumed
    meanwhile.
    """
    try:
        yield from rows
    except MissingFileError as error:
        oldest = latest(store, snapshot).manifest.retention.retained_from
        if snapshot.version >= oldest:
            raise
        raise VersionNotFoundError(
            "the version is past its retention, its files are deleted",
            version=snapshot.version,
            oldest=oldest,
        ) from error


def read_pointer(store: Store, version: int) -> Pointer:
    """Return what the commit of a version says of its manifest; one read.

    `MissingFileError` if the log lacks the version, `ForeignCommitError` if another program
    committed it.
    """
    pointer = own_pointer(store, version)
    if pointer is None:
        raise ForeignCommitError("another program committed this version", version=version)
    return pointer


def own_pointer(store: Store, version: int) -> Pointer | None:
    """Do the same; None for a version that another program committed, though it may copy ours."""
    for action in _commit(store, version):
        if isinstance(action, DomainMetadata) and action.domain == DOMAIN:
            pointer = decode_pointer(action.configuration, commit_path(version))
            return pointer if pointer.version == version else None
    return None


def oldest_version(store: Store) -> int:
    """Return the oldest version whose commit is still in the log; 0 for an empty log. Lists the
    log.
    """
    return next(iter(listed_versions(store)), 0)


def read_manifest(store: Store, ref: FileRef) -> Manifest:
    """Read a manifest by its file; `MissingFileError`, `CorruptFileError`."""
    data = store.read(ref.path)
    verify(data, ref)
    return decode_manifest(data, ref.path)


def hinted_version(store: Store) -> int:
    """Return the version of the newest checkpoint by the log's hint; 0 without a hint."""
    try:
        hint = decode_hint(store.read(LAST_CHECKPOINT))
    except MissingFileError:
        return 0
    return 0 if hint is None else hint.version


def checkpointed_snapshot(store: Store, checkpoint: Checkpoint) -> Snapshot:
    """Return the table by a checkpoint alone; `CorruptFileError` if the checkpoint contradicts the
    manifest.
    """
    state = _from_checkpoint(store, checkpoint)
    return _with_manifest(store, state)


def require_ours_to_write(state: LogState) -> None:
    """Check that Lakesplice knows every feature that the table requires of its writers.

    `UnsupportedError` if it doesn't.
    """
    unknown = set(state.protocol.writer_features) - KNOWN_FEATURES
    if unknown or FEATURE not in state.protocol.writer_features:
        raise UnsupportedError(
            "the table requires writer features that this version lacks; upgrade Lakesplice",
            features=sorted(unknown),
        )


def _from_hint(store: Store) -> LogState | None:
    try:
        checkpoint = decode_hint(store.read(LAST_CHECKPOINT))
        if checkpoint is None:
            return None
        base = _from_checkpoint(store, checkpoint)
    except CorruptFileError:
        # A checkpoint only saves time: older ones, or the commits, have the same content.
        return None
    return replay(base, _probe(store, checkpoint.version + 1))


def _from_listing(store: Store, version: int | None) -> LogState:
    names = [path.rpartition("/")[2] for path in store.list(f"{LOG}/")]
    versions = sorted(_versions(names))
    checkpoints = [
        c for c in complete_checkpoints(names) if version is None or c.version <= version
    ]
    if not versions and not checkpoints:
        raise TableNotFoundError("there is no table in this folder", path=str(store))
    state, damage = _newest_base(store, checkpoints)
    if state is None and versions[:1] == [0]:
        state = start(0, _commit(store, 0))
    if state is None and damage is not None:
        raise damage
    if state is None:
        raise VersionNotFoundError(
            "the version is past its retention", version=version, oldest=versions[:1]
        )
    tail = (v for v in versions if v > state.version and (version is None or v <= version))
    state = replay(state, ((v, _commit(store, v)) for v in tail))
    if version is None:
        # The last commit may be newer than the listing.
        return replay(state, _probe(store, state.version + 1))
    if state.version != version:
        raise VersionNotFoundError(
            "the version was never written", version=version, newest=versions[-1:]
        )
    return state


def _newest_checkpoint(store: Store, version: int) -> list[str]:
    """Return the parts of the newest checkpoint up to a version; none if there is no checkpoint."""
    names = [path.rpartition("/")[2] for path in store.list(f"{LOG}/")]
    found = [c for c in complete_checkpoints(names) if c.version <= version]
    return list(found[-1].names) if found else []


def _newest_base(
    store: Store, checkpoints: Sequence[Checkpoint]
) -> tuple[LogState | None, CorruptFileError | None]:
    """Return the state of the newest undamaged checkpoint, and what is wrong with the newest
    one.
    """
    damage: CorruptFileError | None = None
    for checkpoint in reversed(checkpoints):
        try:
            return _from_checkpoint(store, checkpoint), damage
        except CorruptFileError as error:
            damage = damage or error
    return None, damage


def _from_checkpoint(store: Store, checkpoint: Checkpoint) -> LogState:
    actions: list[Action] = []
    for name in checkpoint.names:
        path = f"{LOG}/{name}"
        with store.open(path) as file:
            actions.extend(read_checkpoint(file, path))
    return start(checkpoint.version, actions)


def _probe(store: Store, version: int) -> Iterator[Commit]:
    while True:
        try:
            actions = _commit(store, version)
        except MissingFileError:
            return
        yield version, actions
        version += 1


def _commit(store: Store, version: int) -> tuple[Action, ...]:
    path = commit_path(version)
    return decode_commit(store.read(path), path)


def _versions(names: Sequence[str]) -> Iterator[int]:
    for name in names:
        version = commit_version(f"{LOG}/{name}")
        if version is not None:
            yield version


def listed_versions(store: Store) -> list[int]:
    """Return the versions whose commits are in the log, ascending. Lists the log."""
    return sorted(_versions([path.rpartition("/")[2] for path in store.list(f"{LOG}/")]))


def _with_manifest(store: Store, state: LogState) -> Snapshot:
    domain = state.domains.get(DOMAIN)
    if domain is None:
        raise TableNotFoundError(
            "the folder holds a Delta table that is not Lakesplice's", path=str(store)
        )
    pointer = decode_pointer(domain.configuration, commit_path(state.version))
    if pointer.version != state.version:
        raise ForeignCommitError(
            "another program committed to the table; undo that by `lakesplice restore TABLE"
            f" --version {pointer.version}`",
            version=state.version,
            ours=pointer.version,
        )
    try:
        manifest = read_manifest(store, pointer.manifest)
    except CorruptFileError as error:
        # The name may be what is damaged.
        facts = {**error.facts, "named_by": commit_path(state.version)}
        raise type(error)(
            "the version's manifest is missing or damaged; restore the file from a backup or, if"
            " it is the newest version, return to the one before by `lakesplice restore TABLE"
            f" --version {state.version - 1}`: {error.message}",
            **facts,
        ) from error
    if manifest.files.keys() != state.adds.keys():
        raise CorruptFileError(
            "the log and the manifest disagree about the base files; restore the log, or delete"
            " its checkpoint if the commits below that are still there",
            version=state.version,
            checkpoint=_newest_checkpoint(store, state.version),
            differing=sorted(manifest.files.keys() ^ state.adds.keys())[:5],
        )
    _require_partitions(state, manifest)
    return Snapshot(state.version, pointer.timestamp_ms, state, manifest)


def _require_partitions(state: LogState, manifest: Manifest) -> None:
    """Check the values of partition columns, which other readers take from the log alone."""
    names = manifest.schema.partitioned_by
    if not names:
        return
    logged = {path: tuple(map(add.partition_values.get, names)) for path, add in state.adds.items()}
    differing = [path for path, file in manifest.files.items() if logged[path] != file.partition]
    if differing or state.metadata.partition_columns != names:
        raise CorruptFileError(
            "the log and the manifest disagree about the files' partitions; restore the log",
            version=state.version,
            differing=sorted(differing)[:5],
        )
