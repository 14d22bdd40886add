"""`lakesplice dlq` on a real lake that no driver serves."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.model.schema import TableSchema
from lakesplice.table.files.dead_letters import DEAD_LETTER_SCHEMA, write_dead_letters
from tests.support.command_line import CommandLine
from tests.support.made import MadeTable

PAYLOADS = (b"\x1b[2J not json\n\x00\xff", None, b"x" * 10_000)


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
        letters = pa.Table.from_pylist([letter], schema=DEAD_LETTER_SCHEMA)
        ref = write_dead_letters(made.store, letters, made.entropy)
        made._ingest(dead_letters=(ref,))
    return made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "lakesplice.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: '127.0.0.1:1', topic_pattern: '.*'}\nlake: {root: lake}\n"
    )
    return file


def test_dead_letters_are_listed_newest_first_with_their_bytes(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    for path in (table.store.root, table.store.root.parents[1]):
        rows = lakesplice.rows("dlq", "list", path, "--values")
        assert [row["offset"] for row in rows] == [2, 1, 0]
        values = [row["value"] and b64decode(row["value"]) for row in rows]
        assert values == list(reversed(PAYLOADS))
        assert {row["reason"] for row in rows} == {"not-json"}
    assert len(lakesplice.rows("dlq", "list", table.store.root, "--limit", 2)) == 2


def test_a_payload_is_shown_short_and_cannot_steer_a_terminal(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    ended = lakesplice("dlq", "list", table.store.root, "--values")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "not json" in ended.out
    assert "(10000 bytes)" in ended.out
    assert "(none)" in ended.out


def test_contents_of_records_are_listed_only_on_request(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    rows = lakesplice.rows("dlq", "list", table.store.root)
    assert not {"key", "value", "headers", "detail"} & rows[0].keys()
    assert {row["reason"] for row in rows} == {"not-json"}
    assert "not json" not in lakesplice("dlq", "list", table.store.root).out


def test_a_lake_without_dead_letters_says_so(lakesplice: CommandLine, tmp_path: Path) -> None:
    MadeTable(tmp_path / "shop" / "orders", TableSchema())
    ended = lakesplice("dlq", "list", tmp_path)
    assert (ended.code, ended.out, ended.err) == (0, "", "no dead letters\n")


def test_a_dead_letter_is_shown_completely_and_with_its_original_bytes(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    ended = lakesplice("dlq", "show", table.store.root, "0:0")
    assert ended.code == 0
    assert repr(PAYLOADS[0]) in ended.out
    assert "first_seen  2023-11-14" in ended.out
    missing = lakesplice("dlq", "show", table.store.root, "0:9")
    assert missing.code != 0
    assert "no such dead letter" in missing.err


@pytest.mark.slow
def test_letters_that_still_cannot_be_read_stay_with_one_more_attempt(
    lakesplice: CommandLine, table: MadeTable, config: Path
) -> None:
    for attempts in (1, 2):
        ended = lakesplice("dlq", "replay", table.store.root, "--letter", "0:0", "--config", config)
        assert ended.out == "0 dead letters replayed, 1 still can't be read and are kept\n"
        rows = {
            row["offset"]: row
            for row in lakesplice.rows("dlq", "list", table.store.root, "--values")
        }
        assert [rows[at]["attempts"] for at in range(3)] == [attempts, 0, 0]
        assert rows[0]["first_seen"] < rows[1]["first_seen"] < rows[0]["last_seen"]
        assert b64decode(rows[0]["value"]) == PAYLOADS[0]


def test_without_a_driver_letters_are_read_by_its_configuration_or_not_at_all(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    ended = lakesplice("dlq", "replay", table.store.root)
    assert ended.code != 0
    assert "--config" in ended.err
    assert {row["attempts"] for row in lakesplice.rows("dlq", "list", table.store.root)} == {0}


def test_dropped_letters_are_gone_and_the_history_says_who_and_why(
    lakesplice: CommandLine, table: MadeTable
) -> None:
    arguments = ("dlq", "drop", table.store.root, "--letter", "0:2", "--letter", "0:1")
    ended = lakesplice(*arguments, "--why", "a test of the producer")
    assert ended.out == "2 dead letters dropped\n"
    assert [row["offset"] for row in lakesplice.rows("dlq", "list", table.store.root)] == [0]
    newest = lakesplice.rows("history", table.store.root)[0]
    assert newest["operation"] == "DROP LETTERS"
    assert newest["metrics"]["letters_dropped"] == 2
    assert newest["why"] == "a test of the producer"
    assert "@" in newest["by"]


def test_dead_letters_are_dropped_only_by_name(lakesplice: CommandLine, table: MadeTable) -> None:
    for arguments in ((), ("--all", "--reason", "not-json")):
        ended = lakesplice("dlq", "drop", table.store.root, "--why", "x", *arguments)
        assert ended.code != 0
        assert "say which dead letters" in ended.err
    unknown = lakesplice("dlq", "drop", table.store.root, "--why", "x", "--reason", "nut-json")
    assert unknown.code != 0
    assert len(lakesplice.rows("dlq", "list", table.store.root)) == 3
    ended = lakesplice("dlq", "drop", table.store.root, "--why", "x", "--reason", "not-json")
    assert ended.out == "3 dead letters dropped\n"
