"""The version of a table that a reader asks for: by number, moment, pin or offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from lakesplice.apps.lake import LEVELS
from lakesplice.errors import UsageError
from lakesplice.model.manifest import Pin
from lakesplice.storage.stores import AnyStore, parent_store
from lakesplice.table.driver.lake_pins import lake_pin
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot
from lakesplice.table.reading.kept_versions import GivenOffsets, open_pinned, version_at_offsets
from lakesplice.table.reading.table import Moment, requested_version

AtOffsets: TypeAlias = GivenOffsets | Mapping[str, GivenOffsets]


def requested_snapshot(
    store: AnyStore,
    *,
    version: int | None = None,
    as_of: Moment | None = None,
    pin: str | None = None,
    at_offsets: AtOffsets | None = None,
) -> Snapshot:
    """Return the requested version, the newest one if nothing is given.

    Blocks. `UsageError` if several are given, and for a pin that doesn't exist or isn't complete;
    `VersionNotFoundError`; otherwise as `open_snapshot`.
    """
    given = {"version": version, "as_of": as_of, "pin": pin, "at_offsets": at_offsets}
    meant = [name for name, value in given.items() if value is not None]
    if len(meant) > 1 and meant != ["version", "as_of"]:
        raise UsageError("give one of these, not several", given=meant)
    if pin is not None:
        found, snapshot = open_pinned(store, pin)
        _require_complete(store, found)
        return snapshot
    if at_offsets is not None:
        return open_snapshot(store, version_at_offsets(store, at_offsets))
    return open_snapshot(store, requested_version(store, version, as_of))


def offsets_of(text: str) -> AtOffsets:
    """Parse offsets such as `0:120,1:97`, or `shop.orders:0:120,…` if several topics feed a table.

    `UsageError` for any other text.
    """
    by_topic: dict[str, dict[int, int]] = {}
    for part in text.split(","):
        place, _, offset = part.strip().rpartition(":")
        topic, _, number = place.rpartition(":")
        if not (number.isdecimal() and offset.isdecimal()):
            raise UsageError(
                "write offsets as partition:offset, such as 0:120,1:97; for several topics with"
                " the topic's name in front",
                given=text,
            )
        by_topic.setdefault(topic, {})[int(number)] = int(offset)
    return by_topic[""] if by_topic.keys() == {""} else by_topic


def _require_complete(store: AnyStore, pin: Pin) -> None:
    above = parent_store(store, LEVELS)
    if above is not None:
        lake, path = above
        whole = lake_pin(lake, pin.name)
        if whole is not None and whole.tables.get(path) == pin.version:
            return
    raise UsageError(
        "the pin isn't complete: another table of the lake may lack it; give `lakesplice pin`"
        " again, or `lakesplice unpin`",
        pin=pin.name,
    )
