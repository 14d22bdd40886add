"""Preconditions of commits about old versions: expiries, sweeps and restores."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.manifest import FileRef, Pin
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import ChangePins, Expire, Intent, Note, Restore, Sweep
from lakesplice.table.protocol.preconditions.tables import (
    generation_is_current,
    nothing_was_committed,
    retention_is_as_read,
)
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot
from tests.support.tables import TableUnderTest
from tests.unit.table.preconditions.cell import Cell, generation_fell


def _expiry_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return Expire(1, table.now().manifest.retention, 1, 0)


def _sweep_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return Sweep(1)


def _note_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return Note(1, "VERIFY")


def _expiry_beside_another(table: TableUnderTest) -> Intent:
    late = Expire(1, table.now().manifest.retention, 0, 0)
    table.committed(Expire(1, table.now().manifest.retention, 1, 0))
    return late


def _promised_what_is_deleted(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.retention.retained_from < before.manifest.retention.retained_from


def _restore(table: TableUnderTest) -> Restore:
    now, first = table.now(), open_snapshot(table.store, 0)
    return Restore(1, now.version, 0, first.manifest, {})


def _restore_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return _restore(table)


def _restore_of_a_version_that_expires_meanwhile(table: TableUnderTest) -> Intent:
    late = _restore(table)
    table.committed(Expire(1, table.now().manifest.retention, 1, 0))
    return late


def _files_of_an_expired_version(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.retention.retained_from == 1 and not after.manifest.files


def _pins(table: TableUnderTest) -> ChangePins:
    pin = Pin("p", 0, EpochMs(0), FileRef("_lakesplice/pins/0.json", 1, ""))
    return ChangePins(1, table.now().manifest.retention, (pin,), "PIN")


def _pin_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return _pins(table)


def _pin_beside_a_vacuum(table: TableUnderTest) -> Intent:
    late = _pins(table)
    table.committed(Expire(1, table.now().manifest.retention, 1, 0))
    return late


def _pinned_what_is_deleted(before: Snapshot, after: Snapshot) -> bool:
    oldest = before.manifest.retention.retained_from
    return any(pin.version < oldest for pin in after.manifest.retention.pins)


CELLS = {
    "pin: generation": Cell(generation_is_current, None, _pin_of_a_deposed_driver, generation_fell),
    "pin: retention": Cell(
        retention_is_as_read,
        ConflictCode.RETENTION,
        _pin_beside_a_vacuum,
        _pinned_what_is_deleted,
    ),
    "restore: generation": Cell(
        generation_is_current, None, _restore_of_a_deposed_driver, generation_fell
    ),
    "restore: version": Cell(
        nothing_was_committed,
        ConflictCode.VERSION,
        _restore_of_a_version_that_expires_meanwhile,
        _files_of_an_expired_version,
    ),
    "expire: generation": Cell(
        generation_is_current, None, _expiry_of_a_deposed_driver, generation_fell
    ),
    "expire: retention": Cell(
        retention_is_as_read,
        ConflictCode.RETENTION,
        _expiry_beside_another,
        _promised_what_is_deleted,
    ),
    "note: generation": Cell(
        generation_is_current, None, _note_of_a_deposed_driver, generation_fell
    ),
    "sweep: generation": Cell(
        generation_is_current, None, _sweep_of_a_deposed_driver, generation_fell
    ),
}
