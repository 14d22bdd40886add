"""Sums of a verification that isn't finished, kept so that a kill costs seconds and not hours.

They are in a file that was named, or in the lake, `_lakesplice/verify/<table>/<number>.json`: each
a new file, as everything in a lake, and the one before is deleted.
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
from lakesplice.errors import LakespliceError
from lakesplice.table.protocol.ports import Clock, Store

_FOLDER = "_lakesplice/verify"
_EVERY_SECONDS = 5.0
# What is older is compared from the beginning, so that a verification says something of today.
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
        """Return what was written last, None if nothing was."""
        return self.path.read_bytes() if self.path.exists() else None

    def write(self, data: bytes) -> None:
        """Replace it."""
        beside = self.path.with_name(f".{self.path.name}.new")
        beside.write_bytes(data)
        beside.replace(self.path)

    def delete(self) -> None:
        """Forget it; may be called twice."""
        self.path.unlink(missing_ok=True)


@dataclass
class LakePlace:
    """A folder of the lake, one per table."""

    lake: Store
    table: str

    def _all(self) -> list[str]:
        return sorted(self.lake.list(f"{_FOLDER}/{self.table}/"))

    def read(self) -> bytes | None:
        """See `FilePlace`."""
        found = self._all()
        with suppress(LakespliceError):
            return self.lake.read(found[-1]) if found else None
        return None

    def write(self, data: bytes) -> None:
        """See `FilePlace`."""
        older = self._all()
        last = int(older[-1].rpartition("/")[2].partition(".")[0]) if older else 0
        self.lake.put_new(f"{_FOLDER}/{self.table}/{last + 1:012}.json", data)
        for path in older:
            self.lake.delete(path)

    def delete(self) -> None:
        """See `FilePlace`."""
        for path in self._all():
            self.lake.delete(path)


@dataclass
class KeptSums:
    """What is kept of one table's verification. Not thread-safe."""

    place: _Place
    clock: Clock
    _mark: str = field(default="", init=False)
    _kept_at: float = field(default=0.0, init=False)

    def take_up(self, sums: SourceSums, table: ComparedTable) -> None:
        """Let sums be what was kept of the same comparison, if anything was."""
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
        """Keep sums; not every time, since a range takes a second or less."""
        now = self.clock.monotonic()
        if now - self._kept_at < _EVERY_SECONDS and not sums.done:
            return
        self._kept_at = now
        document = {
            "mark": self._mark, "written_ms": self.clock.now_ms(), "sums": sums.as_json(),
        }  # fmt: skip
        self.place.write(json.dumps(document).encode())

    def forget(self) -> None:
        """The verification is finished, or begins anew."""
        self.place.delete()


def _mark_of(sums: SourceSums, table: ComparedTable) -> str:
    """What tells one comparison from another: table, columns, hash, buckets."""
    source = table.source
    said = (source.sql, source.made, source.columns, table.compared, table.range_key, sums.buckets)
    return hashlib.sha256(repr(said).encode()).hexdigest()
