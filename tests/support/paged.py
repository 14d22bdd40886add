"""A simulated service with its page, requested as a browser or a program would."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from lakesplice.apps.service.page import ServiceAnswers, site
from lakesplice.errors import StorageError
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.telemetry.endpoints import application, endpoints
from tests.support.simulated_loop import SimulatedService


class PagedService(SimulatedService):
    """A service whose page shows the driver that is alive once `show` was called."""

    def __init__(
        self, folder: Path, *databases: str, tables: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(folder, databases or ("one", "two", "three"), tables)
        self.answers = ServiceAnswers(
            self.driver.settings.with_lake("/srv/lake"), self.health, self.clock
        )
        page = site(self.answers)
        routes = [*page.routes, *endpoints(self.metrics, self.health)]
        self.app = application(routes, page.errors)
        self.client = TestClient(self.app, raise_server_exceptions=False)

    def show(self) -> None:
        """Let the board show what the driver does."""
        self.answers.show(self.driver, self.tables, self.reporter)

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        """Return what the API answers."""
        answer = self.client.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == status, answer.text
        return answer.json()


def busy(folder: Path) -> PagedService:
    """A service that took changes in and compacted some, with one table that nothing ever came
    to.
    """
    service = PagedService(folder)
    service.show()
    again = [lambda: service.put(0, *range(9)) for _ in range(4)]
    service.run([lambda: service.put(0, *range(20)), *again, lambda: service.put(1, 1, 2)])
    return service


def fleet(folder: Path, batches: int, tables: int) -> PagedService:
    """A service of so many tables, 400 at most, of which some moved in so many batches, one is
    parked, one rests and many are new.
    """
    names = [f"{what}_{where}" for what in _DATABASES for where in _PLACES][:tables]
    service = PagedService(folder, *names)
    service.show()
    seconds = itertools.cycle((3.1, 2.4, 4.8, 2.2, 9.5, 2.7, 3.3))
    service.job.meanwhile = lambda: service.clock.advance(next(seconds))

    def change(*tables: int) -> None:
        for table in tables:
            service.put(table, *range(12))

    def moving(round_: int) -> None:
        change(*range(0, 24, 1 + round_ % 3))

    service.run([partial(moving, round_) for round_ in range(batches)])
    service.job.errors = {service.sources[5].topic.name: StorageError("the disk is full")}
    parked = service.table(7)
    detail = "changes without a key can't be matched to rows; give it a key, or tables[].key"
    parked.park(ParkReason(ParkCode.NO_KEY, detail, parked.topic))
    service.run([partial(change, 5, 7, 9), lambda: None])
    service.clock.advance(60)
    service.reporter.tick()
    return service


_DATABASES = (
    *("shop", "billing", "crm", "stock", "ledger", "support", "search", "returns", "loyalty"),
    *("fraud", "audit", "mail", "forms", "media", "events", "quotes", "leases", "fleet", "parts"),
    "orders",
)
_PLACES = (
    *("eu", "us", "uk", "fr", "de", "it", "es", "pl", "cz", "se", "no", "fi", "dk", "nl", "be"),
    *("at", "ch", "jp", "kr", "br"),
)
