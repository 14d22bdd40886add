"""The dashboards are drawn from some minutes of a service with several tables.

`--pictures` rewrites the pictures of docs/dashboards.md.
"""

from __future__ import annotations

import json
import secrets
import struct
import threading
from pathlib import Path

import pytest

from lakesplice.testing.servers.process import free_port
from lakesplice.testing.shop import Database
from lakesplice.testing.shop.database import Row
from tests.support.board_pictures import WIDTH, height, page
from tests.support.browser import browser
from tests.support.ledgers import ledger
from tests.support.machine import ROOT
from tests.support.prometheus import DASHBOARDS, Prometheus
from tests.support.running import Lake
from tests.support.topics import Sender, make_topics
from tests.support.verified import note_comparison

pytestmark = pytest.mark.nightly

PICTURES = ROOT / "docs" / "images"
TABLES = ("orders", "order_lines", "customers", "products", "stock", "payments", "returns", "carts")
SECONDS = 240.0
COMPARED_EVERY = 15


class Shop:
    """Tables that change, each less than the one before."""

    def __init__(self, servers: str, prefix: str) -> None:
        self._sender = Sender(servers)
        self.database = Database(
            [ledger(name) for name in (*TABLES, "keyless")], server=prefix, database="shop"
        )
        self._rounds = 0

    def work(self) -> None:
        """Change every table once."""
        first, self._rounds = self._rounds * 40, self._rounds + 1
        for number, name in enumerate(TABLES, 1):
            rows = [(key, f"row {key}", key, key, 1_000) for key in range(first, first + 40)]
            self.database.insert(name, rows[::number])
            old = [(key,) for key in range(0, first, 40 * number)]
            self.database.update(name, old[-20:], self._changed)
        if self._rounds == 1:
            self.database.insert("keyless", [(1, "one", 1, 1, 1_000)])
        records = [
            (event.topic, 0, None if "keyless" in event.topic else event.key, event.value)
            for event in self.database.drain()
        ]
        records.append((self.database.topic("returns"), 0, b"{}", b"no JSON"))
        self._sender.send_all(records)

    def _changed(self, row: Row) -> Row:
        return (row[0], f"round {self._rounds}", *row[2:])


def test_the_dashboards_can_be_drawn(
    kafka_broker: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    prefix, port = f"drawn-{secrets.token_hex(4)}", free_port()
    shop = Shop(kafka_broker, prefix)
    make_topics(kafka_broker, {shop.database.topic(name): 1 for name in (*TABLES, "keyless")})
    lake = Lake(
        tmp_path / "lake",
        kafka_broker,
        rf"{prefix}\..*",
        trigger=5,
        metrics={"port": port},
        compaction={"deltas_max": 3, "age_max": "20s", "poll_seconds": 1},
        tables=[
            {"match": "shop.order*", "freshness": {"real_time": "15s", "read_optimised": "1m"}},
            {"match": "shop.c*", "freshness": {"real_time": "5s", "read_optimised": "2m"}},
        ],
    )
    pause = threading.Event()
    target = [f"127.0.0.1:{port}"]
    with (
        Prometheus(tmp_path / "prometheus", target) as prometheus,
        lake.running(own_jvm=True) as service,
    ):
        for rounds in range(int(SECONDS / 2)):
            shop.work()
            if rounds % COMPARED_EVERY == COMPARED_EVERY - 1:
                table = TABLES[rounds // COMPARED_EVERY]
                note_comparison(lake, table, different=3 * (table == "stock"))
            assert service.is_running, service.tail()
            pause.wait(2)
        _draw(
            prometheus, tmp_path, PICTURES if request.config.getoption("--pictures") else tmp_path
        )


def _draw(prometheus: Prometheus, work: Path, folder: Path) -> None:
    with browser(work / "browser") as shown:
        for file in DASHBOARDS:
            board = json.loads(file.read_text())
            drawn = work / f"{file.stem}.html"
            drawn.write_text(page(board, prometheus, "shop.orders", SECONDS))
            shown.open(drawn.as_uri(), width=WIDTH, height=height(board))
            name = f"dashboard-{file.stem.removeprefix('lakesplice-')}.png"
            shown.picture(folder / name)
            assert struct.unpack(">I", (folder / name).read_bytes()[16:20]) == (WIDTH,)
