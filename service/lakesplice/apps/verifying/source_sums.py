"""Computes sums of a source's rows by bucket; each range of the key is read in its own snapshot.

The progress is a value (`SourceSums`), so a verification that was killed continues after the last
range. Rows that change meanwhile make sums differ; `differences.py` compares them again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.planning.source_rows.checksums import BucketSums
from lakesplice.planning.source_rows.key_ranges import Bound, KeyRange, range_sql
from lakesplice.storage.source.binlog_places import BinlogPlace, SnapshotPlace
from lakesplice.storage.source.rows import Snapshot, SourceConnection, TableChanged
from lakesplice.table.protocol.ports import Progress

_ROWS_AT_ONCE_MAX = 100_000


@dataclass
class SourceSums:
    """The sums of all rows up to the key `after` (None at the beginning); `done` at the end.

    `places` are the lowest and the highest place of the snapshots. `buckets` is the SQL condition
    of the buckets that are summed.
    """

    sums: BucketSums
    after: Bound | None = None
    done: bool = False
    places: tuple[BinlogPlace, BinlogPlace] | None = None
    rows: int = 0
    buckets: str = "1"

    def add_place(self, place: SnapshotPlace) -> None:
        """Record the place of a snapshot."""
        low, high = self.places or (place.low, place.high)
        self.places = lowest(low, place.low), highest(high, place.high)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON, to be stored."""
        return {
            "counts": _packed(self.sums.counts),
            "totals": _packed(self.sums.totals),
            "after": self.after,
            "done": self.done,
            "places": [[place.file, place.offset] for place in self.places or ()],
            "rows": self.rows,
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Restore from `as_json`'s result; raises `KeyError`, `TypeError` or `ValueError` for other
        content.
        """
        counts, totals = (np.frombuffer(base64.b64decode(kept[n]), "<i8") for n in _ARRAYS)
        self.sums.counts[:], self.sums.totals[:] = counts, totals.view(np.uint64)
        places = [BinlogPlace(str(file), int(offset)) for file, offset in kept["places"]]
        self.places = (places[0], places[1]) if places else None
        self.after = None if kept["after"] is None else tuple(map(str, kept["after"]))
        self.done, self.rows = bool(kept["done"]), int(kept["rows"])


_ARRAYS = ("counts", "totals")


def lowest(*places: BinlogPlace) -> BinlogPlace:
    """Return the lowest of the places."""
    return min(places, key=lambda place: place.position())


def highest(*places: BinlogPlace) -> BinlogPlace:
    """Return the highest of the places."""
    return max(places, key=lambda place: place.position())


def add_source_sums(
    connection: SourceConnection,
    table: ComparedTable,
    found: SourceSums,
    read_limit: ReadLimit,
    keep: Callable[[SourceSums], None],
    progress: Progress,
) -> TableChanged | None:
    """Sum up the remaining ranges. Blocks; calls `keep` after each range."""
    while not found.done:
        read_limit.wait_until_idle(connection)
        changed = connection.in_snapshot(
            table.source, lambda snapshot: _add_range(snapshot, table, found, read_limit)
        )
        if isinstance(changed, TableChanged):
            return changed
        read_limit.spend(changed)
        progress.advance(changed)
        keep(found)
    return None


def _add_range(
    snapshot: Snapshot, table: ComparedTable, found: SourceSums, read_limit: ReadLimit
) -> int:
    count = min(read_limit.rows_at_once, _ROWS_AT_ONCE_MAX)
    bound = snapshot.bound(table.range_key, found.after, count)
    condition = range_sql(table.range_key, KeyRange(found.after, bound))
    read = 0
    compared = table.compared
    asked = f"({condition}) and {found.buckets}"
    for bucket, rows, total in snapshot.answer(compared.sums_sql, asked, "group by b"):
        found.sums.add_sum(int(bucket or 0), int(rows or 0), int(total or 0))
        read += int(rows or 0)
    found.add_place(snapshot.place)
    found.rows += read
    found.after, found.done = bound, bound is None
    return count if bound is not None else read


def _packed(words: np.ndarray[Any, np.dtype[Any]]) -> str:
    return base64.b64encode(words.view("<i8").tobytes()).decode("ascii")
