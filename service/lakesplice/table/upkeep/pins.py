"""Pins: versions of a table that are kept under a name, however old they are.

A pin has a copy of its version's manifest, which has everything that is needed to read the version.
So the pin doesn't depend on the version's entry in the log and on the manifest beside it:

    1  write the copy
    2  commit: from now on no vacuum deletes what the version names

The commit is valid only if no vacuum was committed since the version was found to be whole.
"""

from __future__ import annotations

import re

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Pin, Retention
from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.table.files.whole_files import put_file, read_file
from lakesplice.table.protocol.commit import CommitIntent, Committed
from lakesplice.table.protocol.intents import ChangePins
from lakesplice.table.protocol.layout import pinned_path
from lakesplice.table.protocol.ports import Entropy, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest, manifest_ref, open_retained

PIN, UNPIN = "PIN", "UNPIN"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def require_pin_name(name: str) -> None:
    """Check that a pin can have the name; `UsageError` if not."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            "a pin's name has letters, digits, dots, underscores and hyphens, at most 100 of them,"
            " and begins with a letter or digit",
            name=name,
        )


def pin(
    store: Store,
    snapshot: Snapshot,
    name: str,
    commit: CommitIntent,
    *,
    entropy: Entropy,
    retries: Retries,
    ends_ms: EpochMs = NO_MOMENT,
    version: int | None = None,
    generation: int | None = None,
) -> Pin:
    """Keep a version, by default the newest one, under a name; return the pin.

    It replaces an earlier pin of the name. `commit` makes an intent the next version; `generation`
    is that of the driver or command, None for a table fed by hand. Blocks. `UsageError` for a name
    that no pin can have, `VersionNotFoundError` for a version that is no longer whole,
    `RetryableError` if others always committed first.
    """
    require_pin_name(name)
    while True:
        snapshot = latest(store, snapshot)
        retention = snapshot.manifest.retention
        made = _written(store, _whole(store, snapshot, version), name, ends_ms, entropy)
        others = tuple(one for one in retention.pins if one.name != name)
        counts = {"version": made.version}
        intent = _intent(snapshot, (*others, made), PIN, counts, generation)
        if isinstance(commit(intent), Committed):
            return made
        retries.require_another()


def unpin(
    store: Store,
    snapshot: Snapshot,
    name: str,
    commit: CommitIntent,
    *,
    retries: Retries,
    generation: int | None = None,
) -> int:
    """Remove a pin and return its version. If that version has expired, a sweep deletes its files.

    Otherwise as `pin`; `UsageError` if there is no such pin.
    """
    while True:
        snapshot = latest(store, snapshot)
        found = required_pin(snapshot.manifest.retention, name)
        left = tuple(one for one in snapshot.manifest.retention.pins if one != found)
        intent = _intent(snapshot, left, UNPIN, {"version": found.version}, generation)
        if isinstance(commit(intent), Committed):
            return found.version
        retries.require_another()


def required_pin(retention: Retention, name: str) -> Pin:
    """Return the pin of a name; a `UsageError` names the others if there is none."""
    found = retention.pin(name)
    if found is None:
        known = [pin.name for pin in retention.pins]
        raise UsageError(
            "the table has no such pin; give one of the known ones", pin=name, known=known
        )
    return found


def _whole(store: Store, snapshot: Snapshot, version: int | None) -> Snapshot:
    if version is None or version == snapshot.version:
        return snapshot
    return open_retained(store, snapshot, version)


def _written(store: Store, chosen: Snapshot, name: str, ends_ms: EpochMs, entropy: Entropy) -> Pin:
    ref = manifest_ref(chosen)
    copy = put_file(store, pinned_path(entropy), read_file(store, ref))
    return Pin(name, chosen.version, chosen.timestamp_ms, copy, ends_ms)


def _intent(
    snapshot: Snapshot,
    pins: tuple[Pin, ...],
    operation: str,
    counts: dict[str, int],
    generation: int | None,
) -> ChangePins:
    manifest = snapshot.manifest
    number = manifest.generation if generation is None else generation
    return ChangePins(number, manifest.retention, pins, operation, counts)
