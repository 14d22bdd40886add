"""How commits change which versions a table keeps."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.manifest import Retention
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.intents import Expire, Sweep


def after_expiry(before: Retention, intent: Expire) -> Retention:
    """Return the retention after older versions expired and pins ended."""
    return replace(
        before,
        retained_from=intent.retained_from,
        vacuumed=intent.vacuumed,
        restores=tuple(v for v in before.restores if v >= intent.retained_from),
        pins=tuple(pin for pin in before.pins if pin.name not in intent.ended),
    )


def after_sweep(before: Retention, intent: Sweep, version: int, timestamp_ms: EpochMs) -> Retention:
    """Return the retention after a sweep that is committed as `version`."""
    asked = version if intent.writers_from is None else intent.writers_from
    return replace(
        before,
        writers_from=max(before.writers_from, asked),
        swept=version,
        swept_ms=timestamp_ms,
    )
