"""Commits: the order of writes, and what must still hold for each kind of commit.

The order, and what a crash after each step leaves behind:

    1  base files, deltas, runs,          durable files that nothing names; the caller of `commit`
       dead letters                       has written them
    2  the manifest of the next version   one more such file
    3  `_delta_log/<next version>.json`   put if absent: the commit. It names base files and
                                          manifest: 1 and 2 become visible at once

A crash before step 3 changes nothing for any reader; the vacuum deletes the unnamed files. After
step 3 the commit is complete: no reader needs anything that is written later. Each attempt uses new
random names, so it can't touch the files of another attempt.

A put that fails may have taken effect. Repeating it shows whether it did: either it creates the
file, or the file exists; then it is read back, and the random id in it says who wrote it. If the
file exists, the store has made it durable, even if the first answer was lost.

A writer that loses the race for a version reads the commit that won, checks `PRECONDITIONS` on it
and tries the next version. They are the table of docs/format.md, "Commits"
(`table/protocol/preconditions/by_intent.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from lakesplice.errors import StorageError
from lakesplice.formats.checksum import checksum
from lakesplice.formats.log.actions import DOMAIN, Action, CommitInfo, DomainMetadata, TableMetadata
from lakesplice.formats.log.commit_file import decode_commit, encode_commit
from lakesplice.formats.log.state import replay, start
from lakesplice.formats.manifests import Pointer, encode_manifest, encode_pointer
from lakesplice.model.manifest import FileRef, Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offsets
from lakesplice.table.protocol.intents import Adopt, Create, Intent, Restore, Swap
from lakesplice.table.protocol.layout import commit_path, manifest_path
from lakesplice.table.protocol.offsets import gap_names, next_offsets, view_floor
from lakesplice.table.protocol.outcomes import Committed, Conflict, ConflictCode
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.preconditions import PRECONDITIONS
from lakesplice.table.protocol.retries import OVERTAKEN, Retries
from lakesplice.table.protocol.snapshot import (
    Snapshot,
    find_snapshot,
    latest,
    require_ours_to_write,
)
from lakesplice.table.protocol.transitions import transition
from lakesplice.table.protocol.transitions.parts import CommitPoint, Transition

__all__ = [
    "PRECONDITIONS",
    "CommitIntent",
    "Committed",
    "Conflict",
    "ConflictCode",
    "commit",
    "commit_with_retries",
    "create",
    "take_over",
]

ENGINE = "lakesplice/0.1.0"
ATTEMPTS_MAX = 50
NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})
Planned = TypeVar("Planned", bound=Intent)
"""The kind of intent that a plan returns."""
CommitIntent: TypeAlias = Callable[[Intent], Committed | Conflict]
"""Makes an intent a table's next version, as `commit` does; the caller has bound the table."""

_PUTS_MAX = 3
_ID_BITS = 128


def commit(
    store: Store,
    snapshot: Snapshot,
    intent: Intent,
    *,
    clock: Clock,
    entropy: Entropy,
    parameters: Mapping[str, str] = NO_PARAMETERS,
    attempts: int = ATTEMPTS_MAX,
) -> Committed | Conflict:
    """Make `intent` the table's next version, or return the `Conflict` that prevents it.

    `snapshot` is any version that was read before; newer ones are read here. `parameters` are
    written into the history: they say who wanted the commit. A lost race is retried; after
    `attempts` of them the result is a `Conflict` (CONTENTION). Blocks on the store.

    `FencedError` if a higher generation committed. `StorageError` if the store fails and the effect
    is unknown: the same intent can be committed again, since an intent that took effect doesn't
    meet its own preconditions a second time.
    """
    retries = Retries(clock, entropy, attempts)
    while True:
        snapshot = latest(store, snapshot)
        require_ours_to_write(snapshot.log)
        conflict = broken_precondition(snapshot, intent)
        if conflict is not None:
            return conflict
        committed = _attempt(store, snapshot, intent, clock, entropy, parameters)
        if committed is not None:
            return Committed(committed)
        if not retries.allow_another():
            detail = f"lost the race {attempts} times; try again later"
            return Conflict(ConflictCode.CONTENTION, detail)


def commit_with_retries(
    plan: Callable[[], Planned | None],
    commit_intent: Callable[[Planned], Committed | Conflict],
    retries: Retries,
    message: str = OVERTAKEN,
    **facts: object,
) -> Planned | None:
    """Commit the intent that `plan` returns, and return it; None if `plan` returns None.

    After each conflict `plan` is called again, and must plan on the version that won. Blocks.
    `RetryableError` with `message` and the facts once the retries are used up.
    """
    while (intent := plan()) is not None:
        if isinstance(commit_intent(intent), Committed):
            return intent
        retries.require_another(message, **facts)
    return None


def create(
    store: Store,
    intent: Create | Swap,
    *,
    clock: Clock,
    entropy: Entropy,
    parameters: Mapping[str, str] = NO_PARAMETERS,
) -> Committed | Conflict:
    """Make version 0 of a table in an empty folder, new or of a shadow's content; a `Conflict`
    (EXISTS) if it contains a table.
    """
    # Looked up first, since version 0 of an old table may have been cleaned up.
    if find_snapshot(store) is None:
        committed = _attempt(store, None, intent, clock, entropy, parameters)
        if committed is not None:
            return Committed(committed)
    return Conflict(ConflictCode.EXISTS, "the folder already contains a table")


def take_over(
    store: Store,
    before: Snapshot | None,
    intent: Adopt | Restore,
    *,
    clock: Clock,
    entropy: Entropy,
    parameters: Mapping[str, str] = NO_PARAMETERS,
) -> Committed | Conflict:
    """Make the version after `before`, which another program committed, one of ours; `before` is
    None if there is no log at all.

    A `Conflict` (VERSION) if another program committed meanwhile.
    """
    committed = _attempt(store, before, intent, clock, entropy, parameters)
    if committed is not None:
        return Committed(committed)
    return Conflict(ConflictCode.VERSION, "another program committed to the table meanwhile")


def broken_precondition(snapshot: Snapshot, intent: Intent) -> Conflict | None:
    """Return the first precondition of the intent that doesn't hold on `snapshot`; None if all
    hold.
    """
    for precondition in PRECONDITIONS[type(intent)]:
        conflict = precondition(snapshot, intent)
        if conflict is not None:
            return conflict
    return None


def _attempt(
    store: Store,
    before: Snapshot | None,
    intent: Intent,
    clock: Clock,
    entropy: Entropy,
    parameters: Mapping[str, str] = NO_PARAMETERS,
) -> Snapshot | None:
    """Write the next version; None if another commit took the number first."""
    moment = _moment(before, clock, entropy)
    manifest_before = Manifest(intent.generation) if before is None else before.manifest
    change = transition(manifest_before, intent, moment)
    commit_id = f"{entropy.bits(_ID_BITS):032x}"
    pointer = _put_manifest(store, change.manifest, moment, entropy)
    actions = (_commit_info(change, moment, commit_id, parameters), *change.actions, pointer)
    retries = Retries(clock, entropy, _PUTS_MAX)
    if not _put_commit(store, moment.version, encode_commit(actions), commit_id, retries):
        return None
    log = start(0, actions) if before is None else replay(before.log, [(moment.version, actions)])
    return Snapshot(moment.version, moment.timestamp_ms, log, change.manifest)


def _moment(before: Snapshot | None, clock: Clock, entropy: Entropy) -> CommitPoint:
    now_ms = clock.now_ms()
    if before is None:
        digits = f"{entropy.bits(_ID_BITS):032x}"
        table_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return CommitPoint(0, now_ms, TableMetadata(table_id, "", created_ms=now_ms))
    timestamp_ms = EpochMs(max(now_ms, before.timestamp_ms + 1))
    log = before.log
    return CommitPoint(before.version + 1, timestamp_ms, log.metadata, log.adds)


def _put_manifest(
    store: Store, manifest: Manifest, moment: CommitPoint, entropy: Entropy
) -> Action:
    data = encode_manifest(manifest)
    ref = FileRef(manifest_path(moment.version, entropy), len(data), checksum(data))
    if not store.put_new(ref.path, data):
        raise StorageError("a random file name already exists; try again", path=ref.path)
    return DomainMetadata(DOMAIN, encode_pointer(Pointer(moment.version, moment.timestamp_ms, ref)))


def _put_commit(store: Store, version: int, data: bytes, commit_id: str, retries: Retries) -> bool:
    """Create the log's entry; False if another commit created it first. If the store fails it is
    tried again, up to a bound; then its `StorageError` is raised.
    """
    path = commit_path(version)
    while True:
        try:
            if store.put_new(path, data):
                return True
            break
        except StorageError:
            if not retries.allow_another():
                raise
    ours = decode_commit(store.read(path), path)[:1]
    return any(isinstance(info, CommitInfo) and info.id == commit_id for info in ours)


def _commit_info(
    change: Transition, moment: CommitPoint, commit_id: str, parameters: Mapping[str, str]
) -> CommitInfo:
    manifest = change.manifest
    offsets = {topic: next_offsets(source) for topic, source in manifest.sources.items()}
    floors = {topic: view_floor(manifest, topic) for topic in manifest.sources}
    parameters = {
        "generation": str(change.manifest.generation),
        "offsets": json.dumps(_parameters_of(offsets)),
        "viewFloor": json.dumps(_parameters_of(floors)),
        **({"gaps": ", ".join(gaps)} if (gaps := gap_names(manifest)) else {}),
        **parameters,
        **change.parameters,
    }
    return CommitInfo(
        moment.timestamp_ms, change.operation, commit_id, ENGINE, parameters, change.counts or {}
    )


def _parameters_of(
    topics: Mapping[str, Offsets],
) -> Mapping[str, Offsets] | Offsets:
    """The offsets by partition if there is one topic, else by topic and partition."""
    return topics if len(topics) > 1 else next(iter(topics.values()), {})
