"""A table, requests about it, and the driver that answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakesplice.apps.table_commands.dispatch import RequestWait, answer_of, command_table
from lakesplice.config import Settings
from lakesplice.model.moments import EpochMs
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation, claim_generation
from lakesplice.table.driver.requests import CommandAnswer, CommandRequest
from lakesplice.table.protocol.intents import Redirect
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.made import GENERATION, MadeTable

REASON = ParkReason(ParkCode.NO_KEY, "no key")
ONWARD: dict[str, Any] = {"offsets": [], "stated": None}


class Time:
    """A clock that moves only when somebody waits, and then lets others act."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.seconds = 0.0
        self._meanwhile = meanwhile

    def now_ms(self) -> EpochMs:
        return EpochMs(int(self.seconds * 1000))

    def monotonic(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self._meanwhile()

    def patience(self) -> RequestWait:
        return RequestWait(60, self, self.wait)


def park(table: MadeTable) -> None:
    table._commit(Redirect(GENERATION, table.snapshot.version, parked=REASON))


def driver(lake: LocalStore) -> Generation:
    generation = claim_generation(lake, Time(), lambda _: True)
    assert generation is not None
    generation.beat()
    return generation


def request(command: str, arguments: Mapping[str, Any]) -> CommandRequest:
    expires_ms = FixedClock().now_ms() + 60_000
    return CommandRequest(
        "00ff", command, "shop/orders", "ann@host", EpochMs(expires_ms), arguments
    )


def answered(
    lake: LocalStore, alive: Generation, asked: CommandRequest, settings: Settings
) -> CommandAnswer:
    """What a driver of the lake answers."""
    place = command_table(lake, asked, alive, FixedClock(), SeededEntropy(1), settings=settings)
    return answer_of(asked, place)
