"""Commands on tables of a real lake, one of them parked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lakesplice.model.names import SYSTEM_COLUMNS
from tests.support.command_line import CommandLine
from tests.support.indexed import IndexedTable
from tests.support.lake_of_two import item, root
from tests.support.shards import Scene


def ids(rows: Iterable[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_the_real_time_view_is_read_by_default(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    rows = lakesplice.rows("read", root(items))
    assert ids(rows) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert {row["name"] for row in rows if row["id"] == 3} == {"changed"}
    assert rows[0] == {"id": 0, "name": "name 0", "price": "1.50", "photo": "AP8="}


def test_the_read_optimised_view_and_older_versions_are_read(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    assert len(lakesplice.rows("read", root(items), "--view", "read_optimised")) == 10
    assert len(lakesplice.rows("read", root(items), "--version", 1)) == 10
    assert lakesplice.rows("read", root(items), "--version", 0) == []
    ended = lakesplice("read", root(items), "--version", 99)
    assert ended.code == 1
    assert "version" in ended.err


def test_columns_filters_and_limits_combine(lakesplice: CommandLine, items: IndexedTable) -> None:
    where = "name LIKE 'name%' AND id > 5"
    rows = lakesplice.rows("read", root(items), "--columns", "price, id", "--filter", where)
    assert [list(row) for row in rows] == [["price", "id"]] * 4
    assert ids(rows) == [6, 7, 8, 9]
    limited = lakesplice.rows("read", root(items), "--filter", where, "--limit", 2)
    assert len(limited) == 2
    assert lakesplice.rows("read", root(items), "--limit", 0) == []


def test_deleted_rows_and_system_columns_are_shown_when_asked_for(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    rows = lakesplice.rows("read", root(items), "--include-deleted", "--include-system")
    assert {row["id"]: row["_is_deleted"] for row in rows}[4] is True
    deleted = ["--include-deleted", "--filter", "_is_deleted"]
    assert ids(lakesplice.rows("read", root(items), *deleted)) == [4]
    chosen = lakesplice.rows("read", root(items), *deleted, "--columns", "id", "--include-system")
    assert list(chosen[0]) == ["id", *SYSTEM_COLUMNS]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--filter", "id >"], "isn't a SQL condition"),
        (["--filter", "id + 1"], "true or false"),
        (["--filter", "nobody = 1"], "no such column"),
        (["--filter", "name > 5 and id like 'a'"], "doesn't fit"),
        (["--columns", "nmae"], "no such column"),
    ],
)
def test_an_option_that_does_not_fit_the_table_is_a_usage_error(
    lakesplice: CommandLine, items: IndexedTable, arguments: list[str], complaint: str
) -> None:
    ended = lakesplice("read", root(items), *arguments)
    assert ended.code == 2
    assert complaint in ended.err
    assert not ended.out


def test_rows_are_written_as_parquet_and_csv(
    lakesplice: CommandLine, items: IndexedTable, tmp_path: Path
) -> None:
    for form in ("parquet", "csv"):
        out = tmp_path / f"out.{form}"
        assert lakesplice("read", root(items), "--format", form, "--out", out).code == 0
        again = lakesplice("read", root(items), "--format", form, "--out", out)
        assert again.code == 2
        assert "choose another name" in again.err
    frame = pl.read_parquet(tmp_path / "out.parquet")
    assert frame.sort("id")["name"].to_list()[3] == "changed"
    assert pl.read_csv(tmp_path / "out.csv").sort("id")["photo"].to_list() == ["AP8="] * 9


def test_an_empty_result_keeps_its_columns(
    lakesplice: CommandLine, items: IndexedTable, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    where = ["--filter", "id < 0", "--columns", "name"]
    assert lakesplice("read", root(items), *where, "--format", "parquet", "--out", out).code == 0
    assert pl.read_parquet(out).schema == {"name": pl.String()}
    ended = lakesplice("read", root(items), *where, "--format", "csv")
    assert ended.out == "name\n"


@pytest.mark.slow
def test_a_table_for_people_is_cut_and_says_so(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    items.insert([item(at, "\x1b[31mred") for at in range(100, 200)])
    ended = lakesplice("read", root(items))
    assert ended.code == 0
    assert "the first 50 rows" in ended.err
    assert "\x1b" not in ended.out
    assert len(lakesplice("read", root(items), "--limit", 80).out.splitlines()) == 82


def test_history_lists_versions_with_the_newest_first(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    rows = lakesplice.rows("history", root(items))
    assert [row["version"] for row in rows] == [3, 2, 1, 0]
    assert rows[-1]["operation"] == "CREATE TABLE"
    assert len(lakesplice.rows("history", root(items), "--limit", 1)) == 1
    assert "CREATE TABLE" in lakesplice("history", root(items)).out


@pytest.mark.slow
def test_a_vacuum_lists_beforehand_what_it_deletes(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    items.compact()
    orphan = root(items) / "part-0.parquet"
    orphan.write_bytes(b"refused")
    os.utime(orphan, (0, 0))
    would = lakesplice.rows("vacuum", root(items), "--dry-run")
    assert {row["kind"] for row in would} == {"expired", "orphan"}
    assert all((root(items) / row["path"]).exists() for row in would)
    done = lakesplice("vacuum", root(items), "--format", "json")
    assert (done.code, done.rows) == (0, would)
    assert f"{len(would)} files" in done.err
    assert not any((root(items) / row["path"]).exists() for row in would)
    assert len(lakesplice.rows("read", root(items))) == 9
    old = lakesplice("read", root(items), "--version", 1)
    assert old.code == 1
    assert "past its retention" in old.err
    assert "nothing to delete" in lakesplice("vacuum", root(items)).err


def test_a_vacuum_that_readers_may_feel_has_to_say_so(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    ended = lakesplice("vacuum", root(items), "--retention-hours", 0)
    assert ended.code == 2
    assert "readers may fail" in ended.err
    forced = ["--retention-hours", 0, "--readers-may-fail"]
    assert lakesplice("vacuum", root(items), *forced).code == 0


@pytest.mark.slow
def test_an_older_version_is_restored_and_read_as_of_a_moment(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    ended = lakesplice("restore", root(items), "--version", 2)
    assert ended.code == 0, ended.err
    assert "version 2 restored as version 4" in ended.out
    assert len(lakesplice.rows("read", root(items))) == 10
    newest = lakesplice.rows("history", root(items))[0]
    assert (newest["operation"], newest["metrics"]["version"]) == ("RESTORE", 2)
    assert newest["source"] == {"0": [2, 1]} or newest["source"] == {}
    assert "RESTORE" in lakesplice("history", root(items)).out
    moment = lakesplice.rows("history", root(items))[1]["time"]
    assert len(lakesplice.rows("read", root(items), "--as-of", moment)) == 9
    for wrong, code in ((["--as-of", "1999-01-01"], 1), (["--as-of", "long ago"], 2), ([], 2)):
        assert lakesplice("restore", root(items), *wrong).code == code


@pytest.mark.slow
def test_many_small_files_are_merged(lakesplice: CommandLine, items: IndexedTable) -> None:
    assert "0 files merged; 1 base files now" in lakesplice("merge", root(items)).out
    for at in range(100, 120):
        items.insert([item(at, "new")])
    before = ids(lakesplice.rows("read", root(items)))
    ended = lakesplice("merge", root(items))
    assert ended.code == 0, ended.err
    merged, left = (int(text) for text in ended.out.split() if text.isdecimal())
    assert merged >= 6
    assert left <= 16
    assert ids(lakesplice.rows("read", root(items))) == before
    assert lakesplice("index", "check", root(items)).code == 0


@pytest.mark.slow
def test_a_table_is_laid_out_by_columns_once(lakesplice: CommandLine, items: IndexedTable) -> None:
    for at in range(100, 104):
        items.insert([item(at, "new")])
    before = lakesplice.rows("read", root(items))
    by = (root(items), "--by", "id,name")
    assert "would be laid out next" in lakesplice("optimize", *by, "--dry-run").out
    ended = lakesplice("optimize", *by)
    assert ended.code == 0, ended.err
    assert "5 files laid out in 1 files" in ended.out
    assert "nothing to do" in lakesplice("optimize", *by).out
    assert lakesplice.rows("history", root(items))[0]["operation"] == "CLUSTER"
    assert ids(lakesplice.rows("read", root(items))) == ids(before)
    assert lakesplice("index", "check", root(items)).code == 0
    assert lakesplice("optimize", root(items), "--by", "nothing").code == 2


def test_a_table_without_deleted_rows_is_purged_of_none(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    ended = lakesplice("purge", root(items), "--older-than-hours", 0)
    assert ended.code == 0, ended.err
    assert "0 deleted rows" in ended.out


@pytest.mark.parametrize(
    "command",
    ["read", "history", "index check", "inspect manifest", "inspect log", "unpark", "vacuum"],
)
def test_a_path_without_a_table_is_reported_in_one_line(
    lakesplice: CommandLine, tmp_path: Path, command: str
) -> None:
    ended = lakesplice(*command.split(), tmp_path)
    assert ended.code == 1
    assert "there is no table" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_sound_index_is_reported(lakesplice: CommandLine, items: IndexedTable) -> None:
    ended = lakesplice("index", "check", root(items))
    assert (ended.code, ended.err) == (0, "the index is sound\n")
    (report,) = lakesplice.rows("index", "check", root(items))
    assert (report["sound"], report["rows"], report["missing"]) == (True, 10, 0)


def test_an_unsound_index_is_rebuilt(lakesplice: CommandLine, items: IndexedTable) -> None:
    items.set_runs(items.run({5: items.addresses[5]}))
    ended = lakesplice("index", "check", root(items))
    assert ended.code == 1
    assert "missing: key=" in ended.err
    ended = lakesplice("index", "rebuild", root(items))
    assert ended.code == 0, ended.err
    assert "rebuilt with 10 entries" in ended.out
    assert lakesplice("index", "check", root(items)).code == 0


def test_inspect_shows_log_manifest_deltas_and_index(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    log = lakesplice.rows("inspect", "log", root(items))
    assert [(row["version"], row["added"]) for row in log] == [(3, 0), (2, 0), (1, 1), (0, 0)]
    actions = lakesplice("inspect", "log", root(items), "--version", 1).out.splitlines()
    assert any("add" in json.loads(action) for action in actions)
    manifest = json.loads(lakesplice("inspect", "manifest", root(items)).out)
    assert manifest["version"] == 3
    (delta,) = lakesplice.rows("inspect", "deltas", root(items))
    assert (delta["rows"], delta["waiting"]) == (2, 2)
    changes = lakesplice.rows("inspect", "deltas", root(items), "--file", delta["path"])
    assert {change["id"]: change["_op"] for change in changes} == {3: 1, 4: 2}
    cut = lakesplice("inspect", "deltas", root(items), "--file", delta["path"], "--limit", 1)
    assert "1 more; see --limit" in cut.err
    (run,) = lakesplice.rows("inspect", "index", root(items))
    assert (run["entries"], run["groups"]) == (10, 1)
    ended = lakesplice("inspect", "deltas", root(items), "--file", "nobody.avro")
    assert ended.code == 2
    assert "no delta of that name" in ended.err


def test_a_damaged_delta_is_named_and_not_read(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    path = root(items) / items.manifest.deltas[0].file.path
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    ended = lakesplice("read", root(items))
    assert ended.code == 1
    assert items.manifest.deltas[0].file.path in ended.err


def test_a_parked_table_continues_where_the_operator_says(
    lakesplice: CommandLine, parked: IndexedTable
) -> None:
    ended = lakesplice("unpark", root(parked), "--from-offset", "0:42")
    assert ended.code == 0, ended.err
    manifest = json.loads(lakesplice("inspect", "manifest", root(parked)).out)
    assert manifest["parked"] is None
    assert manifest["source"]["partitions"]["0"]["next_offset"] == 42
    again = lakesplice("unpark", root(parked))
    assert again.code == 1
    assert "isn't parked" in again.err


@pytest.mark.parametrize("offset", ["0", "a:1", "0:-1", "9:1", ":"])
def test_an_offset_that_makes_no_sense_is_refused_and_nothing_changes(
    lakesplice: CommandLine, parked: IndexedTable, offset: str
) -> None:
    ended = lakesplice("unpark", root(parked), "--from-offset", offset)
    assert ended.code == 2
    (row,) = lakesplice.rows("tables", root(parked).parents[1])
    assert row["state"] == "parked"


@pytest.mark.slow
def test_history_has_the_topic_of_what_came_from_several(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    scene = Scene(tmp_path)
    scene.first.put(0, 1)
    scene.second.put(0)
    scene.batch()
    scene.second.put(5, 6)
    scene.batch()
    table = tmp_path / scene.first.driver.name.path
    rows = lakesplice.rows("history", table)
    assert rows[0]["source"] == {scene.second.topic.name: {"0": [1, 3]}}
    assert f"{scene.second.topic.name} 0:1-3" in lakesplice("history", table).out


@pytest.mark.slow
def test_a_command_prints_what_it_did_as_a_json_object(
    lakesplice: CommandLine, items: IndexedTable
) -> None:
    def result(*command: object) -> dict[str, Any]:
        ended = lakesplice(*command, "--json")
        assert ended.code == 0, ended.err
        (row,) = ended.rows
        return row

    done = result("compact", root(items))
    assert done["changes"] == 2
    version = done["version"]
    purged = result("purge", root(items), "--older-than", "0s")
    assert (purged["rows"], purged["text"]) == (0, "0 deleted rows removed for good")
    assert result("merge", root(items))["left"] == 1
    assert result("restore", root(items), "--version", 2)["version"] == version + 1
    assert result("index", "rebuild", root(items))["version"] == version + 2
    lake = root(items).parents[1]
    assert set(result("pin", lake, "month")["versions"].values()) == {version + 2}
    assert result("unpin", lake, "month")["tables"] == 1
