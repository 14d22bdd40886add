"""Which versions are kept, as manifests spell it."""

from __future__ import annotations

from typing import Any

from lakesplice.formats.manifests.files import file_in, file_out
from lakesplice.model.manifest import Pin, Retention
from lakesplice.model.moments import EpochMs


def retention_out(retention: Retention) -> dict[str, Any]:
    """Spell which versions are kept."""
    return {
        "retained_from": retention.retained_from,
        "vacuumed": retention.vacuumed,
        "restores": list(retention.restores),
        "writers_from": retention.writers_from,
        "swept": retention.swept,
        "swept_ms": retention.swept_ms,
        **({"pins": [_pin_out(pin) for pin in retention.pins]} if retention.pins else {}),
    }


def retention_in(value: Any) -> Retention:
    """Read back `retention_out`."""
    return Retention(
        retained_from=int(value["retained_from"]),
        vacuumed=int(value["vacuumed"]),
        restores=tuple(int(version) for version in value["restores"]),
        writers_from=int(value["writers_from"]),
        swept=int(value["swept"]),
        swept_ms=EpochMs(int(value["swept_ms"])),
        pins=tuple(_pin_in(pin) for pin in value.get("pins", ())),
    )


def _pin_out(pin: Pin) -> dict[str, Any]:
    return {
        "name": pin.name,
        "version": pin.version,
        "timestamp_ms": pin.timestamp_ms,
        "manifest": file_out(pin.copy),
        **({"ends_ms": pin.ends_ms} if pin.ends_ms else {}),
    }


def _pin_in(value: Any) -> Pin:
    return Pin(
        name=str(value["name"]),
        version=int(value["version"]),
        timestamp_ms=EpochMs(int(value["timestamp_ms"])),
        copy=file_in(value["manifest"]),
        ends_ms=EpochMs(int(value.get("ends_ms", 0))),
    )
