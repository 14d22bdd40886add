"""What `reset --to` names: where a table is to be read from again."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.planning.sources.position_search import BinlogPlace, GtidPlace, Place
from lakesplice.table.reading.table import moment_ms

EARLIEST, LATEST = "earliest", "latest"
_BINLOG, _GTID = "binlog ", "gtid "


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Exactly one of: a `word` (`EARLIEST` or `LATEST`), a moment in milliseconds since the epoch,
    `offsets` by partition, or a `place` at the source.
    """

    word: str = ""
    moment_ms: EpochMs | None = None
    offsets: Offsets = field(default_factory=dict)
    place: Place | None = None

    @classmethod
    def of(cls, text: str) -> ResetTarget:
        """Read `earliest`, `latest`, `0:12,1:34`, `binlog FILE:POSITION`, `gtid SET`, or a moment;
        `UsageError` for anything else.
        """
        given = text.strip()
        if given in (EARLIEST, LATEST):
            return cls(word=given)
        if given.startswith(_BINLOG):
            return cls(place=BinlogPlace.of(given.removeprefix(_BINLOG).strip()))
        if given.startswith(_GTID):
            return cls(place=GtidPlace.of(given.removeprefix(_GTID).strip()))
        pairs = [part.strip().partition(":") for part in given.split(",")]
        if all(at.isdecimal() and offset.isdecimal() for at, _, offset in pairs):
            return cls(offsets={int(at): Offset(int(offset)) for at, _, offset in pairs})
        try:
            return cls(moment_ms=moment_ms(given))
        except UsageError as error:
            raise UsageError(
                "say where to begin: earliest, latest, a moment such as 2026-11-22T08:00:00Z,"
                " partition:offset,…, 'binlog FILE:POSITION' or 'gtid SET'",
                given=text,
            ) from error
