"""A wide table's events by the million: 23 columns, 1.3 kB an update, two columns changed.

Rows repeat a thousand templates under their own ids, so that events are cut and pasted rather than
built; their before-images are the rows' true states.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Sequence

from lakesplice.testing.shop import Event

TABLE = "sales"
TOPIC = f"bench.shop.{TABLE}"
RETENTION = {"retention.ms": "-1"}
"""For the topics: the events' times are of the past, and a broker drops records for their age."""
_TEMPLATES = 1000
_INTEGERS = (
    "sold_date", "sold_time", "item", "customer", "household", "address", "store", "promotion",
    "ticket", "quantity",
)  # fmt: skip
_DECIMALS = (
    "wholesale_cost", "list_price", "sales_price", "discount", "ext_sales_price",
    "ext_wholesale_cost", "ext_list_price", "ext_tax", "coupon", "net_paid",
)  # fmt: skip
_NULL_SHARE = 0.045  # as in TPC-DS's store_sales

COLUMNS = {
    "id": "bigint",
    **dict.fromkeys(_INTEGERS, "int"),
    **dict.fromkeys((*_DECIMALS, "net_profit"), "decimal(7,2)"),
    "changed_at": "timestamp_micros",
}


class Sales:
    """The table's history: `load` once, then `update` as often as wanted, in this order."""

    def __init__(self, rows: int, seed: int = 7, table: str = TABLE) -> None:
        self.rows = rows
        self.topic = f"bench.shop.{table}"
        self._table = table
        self._random = random.Random(seed)
        self._templates = [self._template() for _ in range(_TEMPLATES)]
        self._versions = bytearray(rows)
        self._changes = 0

    def load(self) -> Iterator[Event]:
        """The snapshot: every row once."""
        source = self._source(4, 0, "first", "null")
        for row in range(self.rows):
            yield Event(self.topic, *self._texts(row, "null", self._image(row), source, "r"))

    def update(self, rows: Sequence[int]) -> Iterator[Event]:
        """One update of each of the rows, in this order."""
        for row in rows:
            self._changes += 1
            before = self._image(row)
            self._versions[row] = (self._versions[row] + 1) % 250
            gtid = f'"0-1-{self._changes}"'
            source = self._source(1000 + self._changes * 1000, 1, "false", gtid)
            yield Event(self.topic, *self._texts(row, before, self._image(row), source, "u"))

    def uniform(self, count: int) -> list[int]:
        """Rows drawn from all of them alike."""
        return self._random.sample(range(self.rows), count)

    def _texts(
        self, row: int, before: str, after: str, source: str, op: str
    ) -> tuple[bytes, bytes, tuple[()], int]:
        value = (
            f'{{"before":{before},"after":{after},"source":{source},"transaction":null,'
            f'"op":"{op}","ts_ms":1772000000103,"ts_us":1772000000103014,'
            '"ts_ns":1772000000103014098}'
        )
        return f'{{"id":{row}}}'.encode(), value.encode(), (), 1_772_000_000_103

    def _image(self, row: int) -> str:
        version = self._versions[row]
        profit = _decimal(row % 100_000 * 7 + version)
        return (
            f'{{"id":{row}{self._templates[row % _TEMPLATES]},"net_profit":"{profit}",'
            f'"changed_at":{1_700_000_000_000_000 + version * 86_400_000_000 + row}}}'
        )

    def _template(self) -> str:
        cells = []
        for name in (*_INTEGERS, *_DECIMALS):
            text = str(self._random.randrange(1, 40_000))
            if name in _DECIMALS:
                text = f'"{_decimal(self._random.randrange(-999_999, 9_999_999))}"'
            if self._random.random() < _NULL_SHARE:
                text = "null"
            cells.append(f',"{name}":{text}')
        return "".join(cells)

    def _source(self, position: int, file: int, snapshot: str, gtid: str) -> str:
        return (
            '{"version":"3.5.0.Final","connector":"mariadb","name":"bench",'
            f'"ts_ms":1772000000000,"snapshot":"{snapshot}","db":"shop","sequence":null,'
            '"ts_us":1772000000000000,"ts_ns":1772000000000000000,'
            f'"table":"{self._table}","server_id":1,"gtid":{gtid},'
            f'"file":"binlog.{file + 1:06d}","pos":{position},'
            '"row":0,"thread":null,"query":null}'
        )


def _decimal(unscaled: int) -> str:
    width = max(1, (unscaled + (unscaled < 0)).bit_length() // 8 + 1)
    return base64.b64encode(unscaled.to_bytes(width, "big", signed=True)).decode()
