"""Stores the sums of an unfinished verification, so that a kill costs seconds and not hours.

They are stored in a file that the user names, or in the lake under
`_lakesplice/verify/<table>/<number>.json`: as everything in a lake, each state is a new file, and
the previous one is deleted.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.source_sums import SourceSums
from lakesplice.table.driver.last_file import LastFile
from lakesplice.table.protocol.ports import Clock, Store

_FOLDER = "_lakesplice/verify"
_EVERY_SECONDS = 5.0
# Older sums are not used, so that the result of a verification isn't out of date.
_AGE_MAX_MS = 86_400_000


class _Place(Protocol):
    def read(self) -> bytes | None: ...
    def write(self, data: bytes) -> None: ...
    def delete(self) -> None: ...


@dataclass
class FilePlace:
    """A file that the user named."""

    path: Path

    def read(self) -> bytes | None:
        """Return the last written bytes; None if there are none."""
        return self.path.read_bytes() if self.path.exists() else None

    def write(self, data: bytes) -> None:
        """Replace the file's content."""
        beside = self.path.with_name(f".{self.path.name}.new")
        beside.write_bytes(data)
        beside.replace(self.path)

    def delete(self) -> None:
        """Delete the file; may be called twice."""
        self.path.unlink(missing_ok=True)


def place_in_lake(lake: Store, table: str, topic: str) -> LastFile:
    """Return the place of the sums of a table and one of its topics."""
    return LastFile(lake, f"{_FOLDER}/{table}/{topic}")


@dataclass
class StoredSums:
    """The stored sums of one table's verification. Not thread-safe."""

    place: _Place
    clock: Clock
    _mark: str = field(default="", init=False)
    _kept_at: float = field(default=0.0, init=False)

    def take_up(self, sums: SourceSums, table: ComparedTable) -> None:
        """Restore the sums of the same comparison, if some were stored."""
        self._mark = _mark_of(sums, table)
        data = self.place.read()
        if data is None:
            return
        with suppress(ValueError, KeyError, TypeError):
            kept = json.loads(data)
            age = self.clock.now_ms() - int(kept["written_ms"])
            if kept["mark"] == self._mark and 0 <= age <= _AGE_MAX_MS:
                sums.restore(kept["sums"])

    def keep(self, sums: SourceSums) -> None:
        """Store the sums, but not at each call, since a range takes a second or less."""
        now = self.clock.monotonic()
        if now - self._kept_at < _EVERY_SECONDS and not sums.done:
            return
        self._kept_at = now
        document = {
            "mark": self._mark, "written_ms": self.clock.now_ms(), "sums": sums.as_json(),
        }  # fmt: skip
        self.place.write(json.dumps(document).encode())

    def forget(self) -> None:
        """Delete the stored sums: the verification is finished, or starts again."""
        self.place.delete()


def _mark_of(sums: SourceSums, table: ComparedTable) -> str:
    """A digest that identifies a comparison: its table, columns, hash and buckets."""
    source = table.source
    asked = (table.compared, table.compared.sums_sql, table.range_key, sums.buckets)
    said = (source.sql, source.made, source.columns, *asked)
    return hashlib.sha256(repr(said).encode()).hexdigest()
