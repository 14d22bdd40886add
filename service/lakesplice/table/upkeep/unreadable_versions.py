"""Undoes the newest versions of a table if they can't be read, by one commit of ours.

Another program committed them, which the table's protocol forbids, or their manifests are lost or
damaged. The commit is a restore of the newest version that can be read; the log keeps the others
below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from lakesplice.errors import CorruptFileError, MissingFileError, RetryableError, UsageError
from lakesplice.formats.log.actions import Action, Add, Remove
from lakesplice.formats.log.state import LogState
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.commit import Committed, take_over
from lakesplice.table.protocol.intents import Restore
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.snapshot import (
    Snapshot,
    listed_versions,
    open_snapshot,
    own_pointer,
    read_log,
)

_FILES_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class UndoneVersions:
    """The `version` that undid some, the version whose state it has again, and their number."""

    version: int
    restored: int
    undone: int


def newest_readable(store: Store) -> Snapshot:
    """Return the newest version of Lakesplice's that can be read. Blocks: lists the log.

    `CorruptFileError` if the log has none.
    """
    for version in reversed(listed_versions(store)):
        if own_pointer(store, version) is not None:
            with suppress(CorruptFileError):
                return open_snapshot(store, version)
    raise CorruptFileError(
        "no version in the log can be read; restore _delta_log from a backup", path=str(store)
    )


def undo_unreadable(
    store: Store, wanted: int, *, clock: Clock, entropy: Entropy
) -> UndoneVersions | None:
    """Return the table to its newest version that can be read, by a new commit, before the version
    `wanted` is restored; None if the newest version can be read.

    It takes no generation: a driver that runs either can't commit until this is done, or its commit
    comes first. Blocks. `UsageError` if `wanted` can't be read. `MissingFileError` if another
    program also deleted files; then nothing is committed. `RetryableError` if somebody commits
    meanwhile, `UnsupportedError` if another program made the table one that we can't read.
    """
    ours = newest_readable(store)
    state = read_log(store)
    if state.version == ours.version:
        return None
    if wanted > ours.version:
        raise UsageError(
            "this version can't be read; choose an older one", version=wanted, newest=ours.version
        )
    actions = tuple(_undoing(ours.log, state, clock.now_ms()))
    missing = [a.path for a in actions if isinstance(a, Add) and store.size(a.path) is None]
    if missing:
        raise MissingFileError(
            "files of the version are deleted; restore them from a backup, or load the table again",
            version=ours.version,
            files=len(missing),
            first=missing[:_FILES_SHOWN_MAX],
        )
    manifest = ours.manifest
    intent = Restore(manifest.generation, state.version, ours.version, manifest, {}, actions)
    outcome = take_over(
        store,
        replace(ours, version=state.version, log=state),
        intent,
        clock=clock,
        entropy=entropy,
        parameters={"undone": f"{ours.version + 1}-{state.version}"},
    )
    if isinstance(outcome, Committed):
        undone = state.version - ours.version
        return UndoneVersions(outcome.snapshot.version, ours.version, undone)
    raise RetryableError(
        "another program committed to the table meanwhile; stop it and try again", path=str(store)
    )


def _undoing(ours: LogState, theirs: LogState, now_ms: EpochMs) -> Iterator[Action]:
    """The actions of the log that lead from their state back to ours."""
    if theirs.protocol != ours.protocol:
        yield ours.protocol
    if theirs.metadata != ours.metadata:
        yield ours.metadata
    for path, add in sorted(theirs.adds.items()):
        if path not in ours.adds:
            yield Remove(path, add.bytes, now_ms, True, add.partition_values, add.log_spelling)
    for path, add in sorted(ours.adds.items()):
        found = theirs.adds.get(path)
        # A file that is there and is only described in another way brings no rows back.
        if found is None or replace(found, data_change=add.data_change) != add:
            yield replace(add, data_change=found is None)
