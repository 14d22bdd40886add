"""`lakesplice dlq list` on a real lake."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.model.schema import TableSchema
from lakesplice.table.dead_letters import LETTER_SCHEMA, write_dead_letters
from tests.support.command_line import CommandLine
from tests.support.made import MadeTable

PAYLOADS = (b"\x1b[2J not json\n\x00\xff", None, b"x" * 10_000)


@pytest.fixture
def lakesplice(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def table(tmp_path: Path) -> MadeTable:
    made = MadeTable(tmp_path / "lake" / "shop" / "orders", TableSchema())
    for offset, value in enumerate(PAYLOADS):
        letter = {
            "topic": "a.shop.orders",
            "partition": 0,
            "offset": offset,
            "timestamp": 1_700_000_000_000 if offset else 2**62,
            "key": b"k",
            "value": value,
            "reason": "not-json",
            "detail": "no JSON at byte 0",
        }
        letters = pa.Table.from_pylist([letter], schema=LETTER_SCHEMA)
        ref = write_dead_letters(made.store, letters, made.entropy)
        made._ingest(dead_letters=(ref,))
    return made


def test_dead_letters_are_listed_newest_first_with_their_bytes(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    for path in (table.store.root, table.store.root.parents[1]):
        rows = lakesplice.rows("dlq", "list", path)
        assert [row["offset"] for row in rows] == [2, 1, 0]
        values = [row["value"] and b64decode(row["value"]) for row in rows]
        assert values == list(reversed(PAYLOADS))
        assert {row["reason"] for row in rows} == {"not-json"}
    assert len(lakesplice.rows("dlq", "list", table.store.root, "--limit", 2)) == 2


def test_a_payload_is_shown_short_and_cannot_steer_a_terminal(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    ended = lakesplice("dlq", "list", table.store.root)
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "not json" in ended.out
    assert "(10000 bytes)" in ended.out
    assert "(none)" in ended.out


def test_a_lake_without_dead_letters_says_so(lakesplice: CommandLine, tmp_path: Path) -> None:
    MadeTable(tmp_path / "shop" / "orders", TableSchema())
    ended = lakesplice("dlq", "list", tmp_path)
    assert (ended.code, ended.out, ended.err) == (0, "", "no dead letters\n")
