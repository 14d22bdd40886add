"""Pins of a lake: versions of all its tables that are kept under one name.

Each table's manifest has a pin of its own. The lake's file is written after the last of them and
deleted before the first of them, so a lake's pin exists only while it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from lakesplice.errors import CorruptFileError, MissingFileError
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.layout import PINS, lake_pin_path
from lakesplice.table.protocol.ports import Store

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LakePin:
    """A lake's pin: versions by table (`database/table`).

    It ends at `ends_ms`; 0 means never. All its tables are complete up to `complete_ms`, by the
    times of their sources; None if that isn't known.
    """

    name: str
    created_ms: EpochMs
    ends_ms: EpochMs
    complete_ms: EpochMs | None
    tables: Mapping[str, int]


def create_lake_pin(lake: Store, pin: LakePin) -> bool:
    """Write a lake's pin durably; False if there is one of its name."""
    value = {"format": _FORMAT, **asdict(pin)}
    return lake.put_new(lake_pin_path(pin.name), json.dumps(value).encode())


def lake_pin(lake: Store, name: str) -> LakePin | None:
    """Read a lake's pin; None if there is none of this name. `CorruptFileError` if it can't be
    read.
    """
    path = lake_pin_path(name)
    try:
        data = lake.read(path)
    except MissingFileError:
        return None
    try:
        value = json.loads(data)
        until = value["complete_ms"]
        return LakePin(
            name=str(value["name"]),
            created_ms=EpochMs(int(value["created_ms"])),
            ends_ms=EpochMs(int(value["ends_ms"])),
            complete_ms=None if until is None else EpochMs(int(until)),
            tables={str(table): int(version) for table, version in value["tables"].items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFileError("a lake's pin can't be read; restore the file", path=path) from error


def lake_pins(lake: Store) -> list[LakePin]:
    """Return a lake's pins in order of name."""
    names = (path.removeprefix(f"{PINS}/").removesuffix(".json") for path in lake.list(f"{PINS}/"))
    found = (lake_pin(lake, name) for name in sorted(names))
    return [pin for pin in found if pin is not None]


def delete_lake_pin(lake: Store, name: str) -> None:
    """Delete a lake's pin, if there is one."""
    with suppress(MissingFileError):
        lake.delete(lake_pin_path(name))
