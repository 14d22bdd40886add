"""Requests about dead letters as a driver executes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.apps.letters import DROP, REPLAY, executed
from lakesplice.errors import FencedError
from lakesplice.model.names import TableName
from lakesplice.model.schema import TableSchema
from lakesplice.table.commit import Committed, Conflict
from lakesplice.table.dead_letters import LETTER_SCHEMA, write_dead_letters
from lakesplice.table.intents import Intent
from lakesplice.table.replay import LetterBox, Reading
from lakesplice.table.requests import Request
from lakesplice.table.snapshot import open_snapshot
from tests.support.made import GENERATION, MadeTable

ALL: dict[str, Any] = {"places": [], "reasons": [], "why": "a probe"}


def deposed(_: Intent) -> Committed | Conflict:
    """What a commit says of a driver that another one took over from."""
    raise FencedError("a driver of a higher generation has taken the lake", generation=GENERATION)


@pytest.fixture
def box(tmp_path: Path) -> LetterBox:
    made = MadeTable(tmp_path / "shop" / "orders", TableSchema())
    letter = {
        "topic": "a.shop.orders",
        "partition": 0,
        "offset": 7,
        "timestamp": 0,
        "value": b"{",
        "reason": "not-json",
        "detail": "no JSON",
        "headers": "[]",
    }
    letters = pa.Table.from_pylist([letter], schema=LETTER_SCHEMA)
    made._ingest(dead_letters=(write_dead_letters(made.store, letters, made.entropy),))
    store = made.store
    return LetterBox(store, open_snapshot(store), deposed, GENERATION, made.clock, made.entropy)


def request(command: str, **arguments: Any) -> Request:
    return Request("00ff", command, "shop/orders", "ann@host", 2**62, arguments)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (REPLAY, {}),
        (REPLAY, {**ALL, "places": [1]}),
        (DROP, {**ALL, "places": None}),
        ("dlq mend", ALL),
    ],
)
def test_a_request_that_nobody_here_knows_is_refused_and_harms_nobody(
    box: LetterBox, command: str, arguments: dict[str, Any]
) -> None:
    given = executed(request(command, **arguments), box, Reading(TableName("shop", "orders")))
    assert not given.done
    assert "request" in given.text


def test_a_driver_that_was_deposed_leaves_the_request_to_the_next_one(box: LetterBox) -> None:
    with pytest.raises(FencedError):
        executed(request(DROP, **ALL), box, Reading(TableName("shop", "orders")))
