"""`lakesplice explain-key` on a table fed by hand, and on one that a topic feeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lakesplice
from lakesplice.storage.local import LocalStore
from tests.support.by_hand import created, given
from tests.support.command_line import CommandLine
from tests.support.simulated import Source, driver_of


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    table = created(LocalStore(tmp_path), [{"id": -5, "name": "secret\x1b[31m", "n": 0}])
    table.upsert(given([{"id": -5, "n": 7}], ["id", "n"]))
    return tmp_path


@pytest.mark.slow
def test_the_story_fits_a_terminal_and_shows_values_only_when_asked(
    cli: CommandLine, by_hand: Path
) -> None:
    ended = cli("explain-key", by_hand, "--", -5)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "key      id = -5"
    assert any("updated at upsert 1 (n)" in line for line in lines)
    assert any("1 changes wait; the base file has the row as of upsert 0" in line for line in lines)
    assert "secret" not in ended.out
    shown = cli("explain-key", by_hand, "--values", "--", -5)
    assert "name = secret\\x1b[31m" in shown.out


def test_json_has_the_same_and_no_values_either(cli: CommandLine, by_hand: Path) -> None:
    found = json.loads(cli("explain-key", by_hand, "--json", "--", -5).out)
    assert [change["effect"] for change in found["changes"]] == ["inserted", "updated"]
    assert found["row"]["waiting"] == 1
    assert "secret" not in json.dumps(found)
    assert "values" not in json.dumps(found)
    with_values = json.loads(cli("explain-key", by_hand, "--json", "--values", "--", -5).out)
    assert with_values["row"]["values"]["n"] == 7


@pytest.mark.slow
def test_a_key_that_cannot_be_expressed_is_refused_with_a_reason(
    cli: CommandLine, by_hand: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    refused = cli("explain-key", by_hand, 1, "--from-topic")
    assert (refused.code, "fed by hand" in refused.err) == (2, True)
    assert "another number of columns" in cli("explain-key", by_hand, 1, 2).err
    assert "fit the key column" in cli("explain-key", by_hand, "one").err
    source, lake = Source(), tmp_path_factory.mktemp("lake")
    driver = driver_of(source, LocalStore(lake))
    source.topic.append(0, source.put(1))
    driver.batch()
    address = lake / driver.name.path
    assert "needs the service's --config" in cli("explain-key", address, 1, "--from-topic").err
    assert "inserted at 0:" in cli("explain-key", address, 1).out


def test_programs_ask_the_table(by_hand: Path) -> None:
    story = lakesplice.Table.open(by_hand).explain(-5)
    assert [change.version for change in story.changes] == [0, 1]
    assert story.row is not None
    assert not story.row.values
