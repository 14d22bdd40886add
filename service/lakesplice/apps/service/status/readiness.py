"""What a running service says of itself to the program around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table now. Freshness is in seconds and None until the table caught up once; `rows` are
    those visible in base files and `deltas_waiting` the deltas not yet spliced in.
    """

    name: str
    version: int
    rows: int
    changes_in: int
    deltas_waiting: int
    freshness_real_time_seconds: float | None
    freshness_read_optimised_seconds: float | None
    compactions: int
    parked: str | None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The whole service now."""

    tables: tuple[TableStatus, ...]
    running: bool
