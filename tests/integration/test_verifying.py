"""`lakesplice verify` finds exactly the differences between a real database and a lake."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml

from lakesplice.apps.verifying import differences, lake_rows
from lakesplice.apps.verifying.report import ComparisonOutcome, DifferenceKind
from lakesplice.apps.verifying.verification import VerificationRequest
from lakesplice.errors import SourceUnavailable
from lakesplice.model.names import IS_DELETED
from lakesplice.storage.source.rows import Snapshot
from lakesplice.storage.source.tables import Row
from lakesplice.table.driver.last_results import last_results
from lakesplice.table.protocol.history import history
from lakesplice.table.reading.table import Table
from tests.support.command_line import CommandLine, Ended
from tests.support.mirrored import COLUMNS, Mirror
from tests.support.sources import SourceServer

_ROWS = 400


@pytest.fixture
def mirror(mariadb: SourceServer, tmp_path: Path) -> Iterator[Mirror]:
    found = Mirror(mariadb, f"db_{secrets.token_hex(4)}", tmp_path)
    yield found
    found.close()


def fill(mirror: Mirror, seed: int = 1) -> None:
    chance = random.Random(seed)
    rows = [
        (
            key,
            chance.choice([None, "", "a", f"name {key}", "é😀\"',\n"]),
            chance.choice([None, Decimal(chance.randint(-999, 999)) / 100]),
            chance.choice([None, 0, chance.randint(-9, 9)]),
            chance.choice([None, 0.1, chance.gauss(0, 1e9)]),
            chance.choice([None, '{"a": 1, "b": [2]}', "[]"]),
        )
        for key in range(_ROWS)
    ]
    mirror.cursor.executemany("insert into items values (%s, %s, %s, %s, %s, %s)", rows)
    mirror.feed()


@pytest.mark.parametrize("quick", [False, True])
def test_a_copy_that_is_whole_is_equal(mirror: Mirror, quick: bool) -> None:
    fill(mirror)
    mirror.run("update items set stock = 7 where id < 20")
    mirror.run("delete from items where id between 30 and 40")
    mirror.feed()
    mirror.driver.compact()
    report = mirror.verify(VerificationRequest(quick=quick))
    assert report.outcome is ComparisonOutcome.EQUAL, report
    assert report.rows_at_source == report.rows_in_lake - mirror.marks == _ROWS - 11
    assert report.not_compared == {}


def lie(row: tuple[Any, ...], **changed: Any) -> tuple[Any, ...]:
    return tuple({**dict(zip(COLUMNS, row, strict=True)), **changed}.values())


_FAULTS: dict[str, tuple[str, Callable[[tuple[Any, ...]], tuple[Any, ...]], set[str]]] = {
    "another value": ("stock = 5", lambda row: lie(row, stock=6), {"stock"}),
    "NULL for empty": ("name = ''", lambda row: lie(row, name=None), {"name"}),
    "a trailing space": ("name = 'a '", lambda row: lie(row, name="a"), {"name"}),
    "another case": ("name = 'a'", lambda row: lie(row, name="A"), {"name"}),
    "a float's last bit": (
        "ratio = 0.3", lambda row: lie(row, ratio=0.30000000000000004), {"ratio"},
    ),
    "the order of JSON's keys": (
        """doc = '{"a":1,"b":2}'""", lambda row: lie(row, doc='{"b":2,"a":1}'), {"doc"},
    ),
    "two columns swapped": (
        "price = 3, stock = 4", lambda row: lie(row, price=Decimal(4), stock=3), {"price", "stock"},
    ),
    "a cent": ("price = 999999.99", lambda row: lie(row, price=Decimal("999999.98")), {"price"}),
}  # fmt: skip


@pytest.mark.parametrize("quick", [False, True])
def test_each_fault_is_found_to_its_key_and_columns(mirror: Mirror, quick: bool) -> None:
    fill(mirror)
    for key, (assignment, _, _) in enumerate(_FAULTS.values(), 100):
        mirror.run(f"update items set {assignment} where id = {key}")
    rows = mirror.rows()
    mirror.feed({at: lying(rows[at]) for at, (_, lying, _) in enumerate(_FAULTS.values(), 100)})
    report = mirror.verify(VerificationRequest(quick=quick))
    assert report.outcome is ComparisonOutcome.DIFFERENT
    assert {(one.key["id"], one.kind, *sorted(one.columns)) for one in report.differences} == {
        (str(at), DifferenceKind.CHANGED, *sorted(columns))
        for at, (_, _, columns) in enumerate(_FAULTS.values(), 100)
    }
    shown = {values for one in report.differences for values in one.columns.values()}
    assert shown == {(None, None)}, "values are shown only when asked for"


def test_rows_that_only_one_side_has_are_found(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("insert into items(id) values (1000)")
    mirror.run("delete from items where id = 7")
    mirror.feed({1000: None, 7: None})
    report = mirror.verify()
    assert report.outcome is ComparisonOutcome.DIFFERENT
    assert {(found.key["id"], found.kind) for found in report.differences} == {
        ("1000", DifferenceKind.MISSING), ("7", DifferenceKind.SURPLUS),
    }  # fmt: skip


def test_a_change_that_is_not_in_the_binlog_is_found_with_its_values(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("update items set stock = 1 where id = 5")
    mirror.feed()
    mirror.unheard("update items set stock = 2 where id = 5")
    report = mirror.verify(VerificationRequest(values=True))
    (found,) = report.differences
    assert found.columns == {"stock": (2, 1)}


def test_many_rows_are_found_by_reading_the_table_once_more(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("update items set stock = 100 where id < 30")
    mirror.run("insert into items(id) select id + 1000 from items where id < 5 and id >= 0")
    rows = mirror.rows()
    mirror.feed(dict.fromkeys([*range(30), *range(1000, 1005)]))
    assert len(rows) == _ROWS + 5
    report = mirror.verify()
    assert len(report.differences) == 35
    report = mirror.verify(VerificationRequest(rows_max=10))
    assert (len(report.differences), report.unexamined) == (10, 25)


def test_a_change_that_is_still_on_its_way_is_no_difference(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("update items set stock = 50 where id = 9")
    report = mirror.verify()  # the lake hears of it while verify waits
    assert report.outcome is ComparisonOutcome.EQUAL, report


def test_without_a_sign_that_the_lake_is_beyond_nothing_is_proven(mirror: Mirror) -> None:
    fill(mirror)
    mirror.unheard("update items set stock = 50 where id = 9")
    report = mirror.verify(wait=0.0)
    assert (report.outcome, report.unsettled, report.differences) == (
        ComparisonOutcome.UNSETTLED,
        1,
        (),
    )
    assert report.exit_code == 3


def test_a_server_whose_binlog_ends_before_the_lake_s_changes_is_not_compared(
    mirror: Mirror,
) -> None:
    fill(mirror)
    mirror.cursor.execute("reset master")
    report = mirror.verify()
    assert report.outcome is ComparisonOutcome.NOT_COMPARED
    assert "another server feeds it" in report.reason


def test_a_sample_looks_at_some_rows_each_day_and_at_all_in_the_end(mirror: Mirror) -> None:
    fill(mirror)
    mirror.unheard("update items set stock = 50 where id = 9")
    found = 0
    for _ in range(4):
        report = mirror.verify(VerificationRequest(share=0.25))
        assert report.share == 0.25
        assert 0 < report.rows_at_source < _ROWS
        found += len(report.differences)
        mirror.clock.advance(86_400)
    assert found == 1


def test_a_verification_that_was_broken_off_continues_after_the_last_range(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mirror)
    mirror.unheard("update items set stock = 50 where id = 9")
    asked: list[str] = []
    lost: list[str] = []
    plain = Snapshot.answer

    def answer(snapshot: Snapshot, expressions: str, condition: str, rest: str = "") -> list[Row]:
        if "group by" in rest:
            asked.append(condition)
            mirror.clock.advance(6)
            if len(asked) == 3 and not lost:
                lost.append(condition)
                raise SourceUnavailable("the connection is lost")
        return plain(snapshot, expressions, condition, rest)

    monkeypatch.setattr(Snapshot, "answer", answer)
    with pytest.raises(SourceUnavailable):
        mirror.verify(rows_per_second=100)
    report = mirror.verify(rows_per_second=100)
    assert asked[3] == asked[2], "it goes on where it was broken off"
    assert [found.key for found in report.differences] == [{"id": "9"}]
    asked.clear()
    mirror.verify(rows_per_second=100)
    assert ">" not in asked[0], "the next one begins at the beginning"


def test_the_connector_s_own_differences_are_named(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("insert into items(id, name) values (1003, null)")
    mirror.feed({1003: lie(mirror.rows()[1003], name="none")})
    (found,) = mirror.verify().differences
    assert "replace.null.with.default" in found.note


def test_a_change_that_was_rolled_back_to_a_savepoint_is_named(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The binlog keeps it since the transaction also wrote to a table without transactions."""
    fill(mirror)
    mirror.run("update items set stock = 1 where id in (4, 5, 6)")
    mirror.feed()
    mirror.run("create table counts (n int) engine = myisam")
    mirror.run("show master status")
    file, begin = mirror.cursor.fetchone()[:2]
    transaction = """begin; update items set stock = 2 where id = 4; savepoint first;
        update items set stock = 2 where id = 5; insert into counts values (1);
        rollback to savepoint first; commit"""
    for statement in transaction.split(";"):
        mirror.run(statement)
    mirror.run(f"show binlog events in '{file}' from {begin}")
    events = [(row[2], row[1]) for row in mirror.cursor.fetchall()]
    _, undone = [at for kind, at in events if kind.startswith("Update_rows")]
    before = mirror.rows()[5]
    mirror.send((file, undone), before, lie(before, stock=2))
    mirror.feed()
    mirror.unheard("update items set stock = 3 where id in (4, 6)")
    notes = {found.key["id"]: found.note for found in mirror.verify().differences}
    assert "rolled back to a savepoint" in notes.pop("5")
    assert notes == {"4": "", "6": ""}, "their newest changes were committed"
    mirror.unheard("update items set stock = if(id = 4, 2, 1) where id in (4, 6)")
    monkeypatch.setattr(differences, "_EXPLAINED_MAX", 0)
    assert [found.note for found in mirror.verify().differences] == [""], "it isn't looked for"


def test_a_row_that_an_insert_only_table_keeps_is_explained(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("delete from items where id = 3")
    mirror.feed({3: None})
    (found,) = mirror.verify(VerificationRequest(insert_only=True)).differences
    assert (found.kind, "insert-only" in found.note) == (DifferenceKind.SURPLUS, True)


def test_a_key_that_the_database_does_not_keep_unique_is_not_compared(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("alter table items drop primary key, add n int auto_increment primary key")
    assert "unique" in mirror.verify().reason
    mirror.run("alter table items add unique (id)")
    report = mirror.verify()
    assert report.outcome is ComparisonOutcome.EQUAL, report
    assert report.not_compared == {"n": "the table lacks it"}
    assert report.as_arguments["not_compared"] == "n"


def test_a_row_that_the_lake_has_twice_is_found_and_a_tombstone_beside_a_row_is_none(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mirror)
    plain, again = lake_rows._read, pa.table({"id": pa.array([5, 6], pa.int64())})

    def read(*of: Any, include_deleted: bool) -> Iterator[pa.Table]:
        """As if a purge or a move had left row 5 twice, and a tombstone of row 6."""
        for rows in plain(*of, include_deleted=include_deleted):
            yield rows
            extra = rows.filter(pc.is_in(rows.column("id"), again.column("id").combine_chunks()))
            if include_deleted:
                gone = pc.equal(extra.column("id"), 6)
                at = extra.schema.get_field_index(IS_DELETED)
                yield extra.set_column(at, IS_DELETED, gone).cast(rows.schema)
            else:
                yield extra.filter(pc.equal(extra.column("id"), 5))

    monkeypatch.setattr(lake_rows, "_read", read)
    (found,) = mirror.verify().differences
    assert (found.key, found.kind) == ({"id": "5"}, DifferenceKind.SURPLUS)
    assert "more than one row" in found.note


def test_a_source_without_a_key_or_a_table_is_not_compared(mirror: Mirror) -> None:
    fill(mirror)
    mirror.run("alter table items drop primary key")
    assert "no key" in mirror.verify().reason
    mirror.run("drop table items")
    assert "no such table" in mirror.verify().reason


@pytest.fixture
def verify(
    mirror: Mirror,
    mariadb: SourceServer,
    lakesplice: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Ended]:
    """Return a call of `lakesplice verify` for the mirrored table."""
    config = mirror.folder / "lakesplice.yaml"
    address = f"mysql://{mariadb.user}@{mariadb.host}:{mariadb.port}"
    settings = {
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": ".*"},
        "lake": {"root": str(mirror.folder / "lake")},
        "verify": {"databases": {"prefix": address}, "wait": "60s"},
    }
    config.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("MYSQL_PWD", mariadb.password)
    return partial(lakesplice, "verify", mirror.name, "--config", config)


def test_the_command_says_what_differs_and_ends_with_a_code_for_it(
    mirror: Mirror, verify: Callable[..., Ended]
) -> None:
    fill(mirror)
    ended = verify("--json")
    assert ended.code == 0, ended
    assert ended.rows[0]["outcome"] == "equal"
    mirror.unheard("update items set stock = 4711 where id = 9")
    with mirror.changing():
        ended = verify()
    assert ended.code == 1, ended
    assert "id=9: differs in stock" in ended.out
    assert "4711" not in ended.out + ended.err
    with mirror.changing():
        ended = verify("--repair", "--json")
    assert ended.code == 0, ended
    (told,) = ended.rows
    assert (told["outcome"], told["repaired"], told["not_repaired"]) == ("different", 1, "")
    kept = Table(mirror.store).read(columns=["id", "stock"]).to_pylist()
    assert {"id": 9, "stock": 4711} in kept
    (result,) = last_results(mirror.root)
    assert (result.outcome, result.different) == (ComparisonOutcome.EQUAL, 0)
    assert "REPAIR" in [version.info.operation for version in history(mirror.store)]
