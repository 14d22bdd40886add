"""How much a source database is burdened with."""

from __future__ import annotations

from dataclasses import dataclass

CONNECTIONS, CHUNK_ROWS, THREADS_RUNNING_MAX = 4, 20_000, 50


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """At most so many `connections` and, if it isn't 0, `rows_per_second`, in all; chunks of about
    `chunk_rows` rows. While more than `threads_running_max` threads of the server work, no chunk is
    begun.
    """

    connections: int = CONNECTIONS
    rows_per_second: int = 0
    chunk_rows: int = CHUNK_ROWS
    threads_running_max: int = THREADS_RUNNING_MAX
