"""The source's binlog: files that rotate, offsets that grow, transaction ids, and one clock."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.ports import Clock

SERVER_ID: Final = 223344
FIRST_OFFSET: Final = 4
_FIRST_EVENT_OFFSET: Final = 6703
_MEAN_GAP_MICROSECONDS: Final = 2_000


class Moment(NamedTuple):
    """The position and time of one statement, as its events show them.

    `gtid` and `snapshot` are JSON fragments; `second` is the server's clock, `micros` the
    connector's, which reads the statement slightly later.
    """

    file: str
    pos: int
    gtid: str
    server_id: int
    snapshot: str
    second: int
    micros: int

    @property
    def produced_ms(self) -> EpochMs:
        """The record's Kafka timestamp."""
        return EpochMs(self.micros // 1000)

    def processed(self, row: int) -> str:
        """The envelope's three timestamps, as members of a JSON object."""
        micros = self.micros + row
        return (
            f'"ts_ms":{micros // 1000},"ts_us":{micros},"ts_ns":{micros}{(micros * 7) % 1000:03d}'
        )


class SimulatedClock:
    """A clock that only tests move: a run is the same on any machine."""

    def __init__(self, start_ms: EpochMs, random: Random) -> None:
        self._micros = start_ms * 1000
        self._random = random

    def now_ms(self) -> EpochMs:
        """Milliseconds since the epoch; each call is slightly later."""
        self._micros += self._random.randrange(2 * _MEAN_GAP_MICROSECONDS)
        return EpochMs(self._micros // 1000)

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.now_ms() / 1000

    def wait(self, seconds: float) -> None:
        """Let time pass at once."""
        self._micros += round(seconds * 1_000_000)


class Binlog:
    """Makes moments in strictly ascending order of (file, offset).

    A file is rotated once it holds `file_bytes`. The clock may stop or go back; the moments never
    do.
    """

    def __init__(self, clock: Clock, *, file_bytes: int = 1 << 20) -> None:
        self._clock = clock
        self._file_bytes = file_bytes
        self._file = 1
        self._pos = _FIRST_EVENT_OFFSET
        self._transaction = 0
        self._micros = clock.now_ms() * 1000

    @property
    def file(self) -> str:
        """The present file's name."""
        return f"binlog.{self._file:06d}"

    def begin(self) -> None:
        """Start a transaction: all statements up to the next start share its id."""
        self._transaction += 1
        # A file ends only between transactions, as in a real server.
        if self._pos > self._file_bytes:
            self._file, self._pos = self._file + 1, FIRST_OFFSET
        self._pos += 200
        self._tick()

    def statement(self, rows: int) -> Moment:
        """Return the moment of a statement on `rows` rows, which share its offset."""
        self._pos += 150 + 90 * rows
        self._micros += rows + 1
        gtid = f'"0-{SERVER_ID}-{self._transaction}"'
        return self._moment(gtid, SERVER_ID, "null")

    def snapshot(self) -> Moment:
        """Return the moment of a snapshot's row: the present end of the binlog, without a
        transaction.
        """
        self._micros += 1
        return self._moment("null", 0, '"true"')

    def _moment(self, gtid: str, server_id: int, snapshot: str) -> Moment:
        second = self._micros // 1_000_000
        return Moment(
            file=self.file,
            pos=self._pos,
            gtid=gtid,
            server_id=server_id,
            snapshot=snapshot,
            second=second,
            micros=self._micros,
        )

    def _tick(self) -> None:
        self._micros = max(self._micros + 1, self._clock.now_ms() * 1000)
