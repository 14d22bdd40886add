"""`lakesplice erase`: from a file of keys to a report of what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.apps.table_commands.dispatch import give_command
from lakesplice.apps.table_commands.erasing import keys_in
from lakesplice.apps.table_commands.work import ERASE
from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from tests.support.command_line import CommandLine
from tests.support.simulated import Source, driver_of, rows_of

NAME = "Rosalind Franklin"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    place = tmp_path / "lake" / "shop" / "people"
    rows = pa.table({"id": [1, 2, 3], "name": ["Ada", NAME, "Grace"]})
    table = Table.create(place, rows, key=["id"])
    table.upsert(delete=pa.table({"id": [2]}))
    return place


def asked(tmp_path: Path, *lines: str, name: str = "keys") -> Path:
    file = tmp_path / name
    file.write_text("\n".join(lines))
    return file


@pytest.mark.slow
def test_rows_are_erased_and_the_report_says_what_was_searched(
    lakesplice: CommandLine, people: Path, tmp_path: Path
) -> None:
    keys, values = asked(tmp_path, "2"), asked(tmp_path, NAME, name="values")
    kept = people.parents[1] / "_lakesplice" / "verify" / "shop" / "people" / "1.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("bounds")
    options = ("--keys", keys, "--values", values)
    before = lakesplice("erase", people, *options, "--dry-run")
    assert before.code == 0
    assert "1 rows of 1 keys, 0 of them not deleted" in before.out
    assert NAME not in before.out
    assert "_lakesplice/index" in before.out
    done: dict[str, Any] = lakesplice("erase", people, *options, "--json").rows[0]
    assert (done["rows"], done["search"]["found"]) == (1, {})
    assert done["search"]["values"] == 3
    assert not kept.exists()
    assert lakesplice("erase", people, *options).code == 0


@pytest.mark.slow
def test_an_erased_value_that_is_still_found_is_a_failure(
    lakesplice: CommandLine, people: Path, tmp_path: Path
) -> None:
    options = ("--keys", asked(tmp_path, "2"), "--values", asked(tmp_path, "Grace", name="v"))
    ended = lakesplice("erase", people, *options)
    assert ended.code == 1
    assert "base/" in ended.out
    assert lakesplice("erase", people, *options, "--no-search").code == 0


@pytest.mark.slow
def test_rows_that_live_are_refused_with_advice(
    lakesplice: CommandLine, people: Path, tmp_path: Path
) -> None:
    keys = asked(tmp_path, "1", "2")
    refused = lakesplice("erase", people, "--keys", keys)
    assert refused.code == 2
    assert "--also-live" in refused.err
    assert lakesplice("erase", people, "--keys", keys, "--also-live").code == 0
    assert [row["id"] for row in lakesplice.rows("read", people)] == [3]


def test_keys_are_read_from_lines_of_json_or_text() -> None:
    assert keys_in('7\n\n"a b"\na@b.c\n["de", 1]\n{"id": 2}') == [
        7, "a b", "a@b.c", ["de", 1], {"id": 2},
    ]  # fmt: skip
    assert keys_in('"a\u2028b"\r\nc \x85d \r\n') == ["a\u2028b", "c \x85d "]
    with pytest.raises(UsageError, match="a key per line"):
        keys_in("\n")


@pytest.mark.slow
def test_a_table_of_a_topic_is_erased_as_its_driver(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for events in (source.put(1), source.put(2), source.delete(2)):
        source.topic.append(0, events)
        driver.batch()
    arguments = {"keys": [2], "also_live": False}
    done = give_command(tmp_path / "shop" / "goods", ERASE, arguments)
    assert done.facts["rows"] == 1
    store = LocalStore(tmp_path / "shop" / "goods")
    assert [row["id"] for row in rows_of(store)] == [1]
    info = next(Table.open(tmp_path / "shop" / "goods").history()).info
    assert info.operation == "ERASED"
    assert "@" in info.parameters["by"]
