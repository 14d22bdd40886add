"""`lakesplice views`: the SQL of one table or of a lake, as text or as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.storage.local import LocalStore
from tests.support.by_hand import created
from tests.support.command_line import CommandLine


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("notes", "to_x20_do"):
        created(LocalStore(tmp_path / "shop" / name))
    (tmp_path / "shop" / "begun" / "_delta_log").mkdir(parents=True)
    return tmp_path


@pytest.mark.slow
def test_a_lake_gives_a_script_and_a_table_the_part_of_it(cli: CommandLine, lake: Path) -> None:
    whole = cli("views", lake, "--for", "duckdb")
    assert whole.code == 0
    first, view = f"""\
INSTALL delta;
LOAD delta;

-- shop.to do, version 0
CREATE SCHEMA IF NOT EXISTS "shop";
CREATE OR REPLACE VIEW "shop"."to_x20_do" AS
SELECT
  base."id",
  base."name",
  base."n",
  base."price"
FROM delta_scan('{lake}/shop/to_x20_do') AS base
WHERE NOT base."_is_deleted";
""".split("\n\n")
    assert whole.out.startswith(f"{first}\n\n-- shop.notes, version 0\n")
    assert whole.out.endswith(f"\n\n{view}")
    one = cli("views", lake / "shop" / "to_x20_do", "--for", "duckdb")
    assert one.out == f"{first}\n\n{view}"


def test_json_has_a_line_for_each_table_with_all_that_it_needs(
    cli: CommandLine, lake: Path
) -> None:
    ended = cli("views", lake, "--for", "athena", "--location", "s3://lake/", "--json")
    rows = ended.rows
    assert [row["table"] for row in rows] == ["shop.notes", "shop.to do"]
    assert rows[1]["location"] == "s3://lake/shop/to_x20_do/"
    assert rows[0]["columns"][0] == {
        "name": "id",
        "stored_name": "id",
        "type": "long",
        "wall_clock": False,
    }
    assert len(rows[0]["statements"]) == 3
    snowflake = cli("views", lake, "--for", "snowflake", "--json").rows
    assert snowflake[1]["statements"][0].startswith("CREATE CATALOG INTEGRATION")


def test_what_is_wrong_is_said(cli: CommandLine, lake: Path) -> None:
    absent = cli("views", lake / "none", "--for", "spark")
    assert (absent.code, "no lake or table here" in absent.err) == (1, True)
    begun = cli("views", lake / "shop" / "begun", "--for", "spark")
    assert (begun.code, begun.out) == (1, "")
    here = cli("views", lake, "--for", "athena")
    assert (here.code, "--location" in here.err) == (2, True)
    unknown = cli("views", lake, "--for", "oracle")
    assert (unknown.code, unknown.out) == (2, "")
