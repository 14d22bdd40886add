"""What upkeep remembers of each table from turn to turn: when something is due again, and what was
computed of its present version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lakesplice.apps.service.tables import ServiceTable
from lakesplice.model.manifest import Manifest
from lakesplice.table.protocol.ports import Clock

# A table is first looked at after this share of the interval: looking at every table at once would
# delay the service's start.
_FIRST = 1 / 24
Computed = TypeVar("Computed")


class Intervals:
    """When something is due for each table: every so many seconds, at first earlier. Safe from
    several threads, one for each table.
    """

    def __init__(self, clock: Clock, every_seconds: float) -> None:
        self._clock = clock
        self._every_seconds = every_seconds
        self._next: dict[str, float] = {}

    def is_due(self, table: ServiceTable) -> bool:
        """Whether it is time; the first call begins the first interval."""
        now = self._clock.monotonic()
        first = now + self._every_seconds * _FIRST
        return now >= self._next.setdefault(str(table.name), first)

    def begin(self, table: ServiceTable) -> None:
        """Begin a whole interval."""
        self._next[str(table.name)] = self._clock.monotonic() + self._every_seconds

    def end(self, table: ServiceTable) -> None:
        """End the interval: it is due at once, since something is left to be done."""
        self._next[str(table.name)] = self._clock.monotonic()


class ComputedOnce(Generic[Computed]):
    """The results of `compute`, which is called with a table's name and manifest, again whenever
    the manifest is another one. Safe from several threads: at worst two compute the same.

    Every turn of a compactor looks at every table, and most haven't changed since the last one.
    """

    def __init__(self, compute: Callable[[str, Manifest], Computed]) -> None:
        self._compute = compute
        self._known: dict[str, tuple[Manifest, Computed]] = {}

    def of(self, table: ServiceTable) -> Computed:
        """Return the result for a table's present manifest."""
        name, manifest = str(table.name), table.manifest
        known = self._known.get(name)
        if known is None or known[0] is not manifest:
            known = self._known[name] = manifest, self._compute(name, manifest)
        return known[1]
