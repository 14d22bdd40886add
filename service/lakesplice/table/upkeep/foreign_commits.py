"""Undoes what another program committed to a table of ours, which its protocol forbids.

No commit of ours can follow such a commit, so all of them are at the end of the log. One commit of
ours, a restore, returns to the state of our last version; the log keeps the others below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakesplice.errors import CorruptFileError, MissingFileError, RetryableError, UsageError
from lakesplice.formats.log.actions import Action, Add, Remove
from lakesplice.formats.log.state import LogState
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.commit import Committed, take_over
from lakesplice.table.protocol.intents import Restore
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.snapshot import (
    listed_versions,
    open_snapshot,
    own_pointer,
    read_log,
)

_FILES_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class UndoneCommits:
    """The `version` that undid commits of another program, the version whose state it has again,
    and the number of commits.
    """

    version: int
    restored: int
    commits: int


def last_own_version(store: Store) -> int:
    """Return the newest version that Lakesplice committed. Blocks: lists the log.

    `CorruptFileError` if the log has none.
    """
    for version in reversed(listed_versions(store)):
        if own_pointer(store, version) is not None:
            return version
    raise CorruptFileError(
        "the log has no version of Lakesplice's; restore _delta_log from a backup", path=str(store)
    )


def undo_foreign_commits(
    store: Store, wanted: int, *, clock: Clock, entropy: Entropy
) -> UndoneCommits | None:
    """Return the table to our last version, by a new commit, before the version `wanted` is
    restored; None if the newest version is ours.

    It takes no generation: no driver commits to the table until this is done, and afterwards the
    table is as the driver left it. Blocks. `UsageError` if `wanted` isn't ours. `MissingFileError`
    if the other program also deleted files; then nothing is committed. `RetryableError` if it
    commits meanwhile, `UnsupportedError` if it made the table one that we can't read.
    """
    version = last_own_version(store)
    state = read_log(store)
    if state.version == version:
        return None
    if wanted > version:
        raise UsageError(
            "another program committed this version; choose one that Lakesplice committed",
            version=wanted,
            newest=version,
        )
    ours = open_snapshot(store, version)
    actions = tuple(_undoing(ours.log, state, clock.now_ms()))
    missing = [a.path for a in actions if isinstance(a, Add) and store.size(a.path) is None]
    if missing:
        raise MissingFileError(
            "another program deleted files of the table; restore them from a backup, or load the"
            " table again",
            files=len(missing),
            first=missing[:_FILES_SHOWN_MAX],
        )
    manifest = ours.manifest
    intent = Restore(manifest.generation, state.version, version, manifest, {}, actions)
    outcome = take_over(
        store,
        replace(ours, version=state.version, log=state),
        intent,
        clock=clock,
        entropy=entropy,
        parameters={"undone": f"{version + 1}-{state.version}"},
    )
    if isinstance(outcome, Committed):
        return UndoneCommits(outcome.snapshot.version, version, state.version - version)
    raise RetryableError(
        "another program commits to the table all the time; stop it and try again",
        path=str(store),
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
