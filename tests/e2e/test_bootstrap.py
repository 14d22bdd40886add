"""Tables of a real database are filled while it is written to, by a command that is killed."""

from __future__ import annotations

import math
import random
import time
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.fleet import Fleet
from tests.support.running import take_in
from tests.support.sources import SourceServer
from tests.support.waiting import until

# All kills in one test would last longer than a test may.
_KILLS, _KILLS_MAX, _LIVES = 3, 30, 6
_STAGES = ("planned", "begun", "filled", "swapped")


@pytest.fixture
def server(mariadb: SourceServer) -> SourceServer:
    """The run's MariaDB."""
    return mariadb


@pytest.mark.nightly
def test_tables_are_filled_while_written_to_and_the_stream_takes_over(
    server: SourceServer, kafka_broker: str, tmp_path: Path, seed: int
) -> None:
    chance, fleet = random.Random(seed), Fleet(server, kafka_broker, tmp_path, seed)
    with fleet.connect:
        fleet.source.run(40)
        for table in ("still", "filed"):
            fleet.write(f"update {table} set d = 7 where id = 1")
        fleet.ends()
        filed = f"{fleet.source.database}.filed"
        given = ("--files", str(fleet.file), "--position", fleet.position, "--connector-ran")
        fleet.killed("bootstrap", "--tables", filed, *given, commits=1)
        (row,) = fleet.done("bootstrap", "--tables", filed, *given)
        assert row["state"] == "filled"
        kept = [(1, "ü", Decimal("7.000")), (2, "", Decimal("-0.001")), (3, None, None)]
        assert fleet.read("filed") == kept
        with fleet.written_to():
            for _ in range(_KILLS):
                fleet.killed("bootstrap", commits=chance.randint(1, 25))
            rows = fleet.done("bootstrap")
        assert {row["table"].partition(".")[2] for row in rows} == {
            "marks",
            "still",
            "filed",
            *(table.name for table in fleet.source.tables),
        }
        fleet.lake.configure(schema_changes={"create_table": "ignore"})
        with fleet.lake.running() as service:
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
            with fleet.written_to():
                name = f"{fleet.source.database}.everything"
                fleet.killed("rebuild", name, commits=3)
            (row,) = fleet.done("rebuild", name)
            assert (row["state"], row["verified"]) == ("filled", "equal")
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
            still = f"{fleet.source.database}.still"
            with fleet.written_to():  # what comes later proves that nothing is on its way
                (row,) = fleet.rows("rebuild", still, "--from", "topic")
            assert (row["state"], row["verified"]) == ("different", "different"), row
            fleet.done("rebuild", still, "--give-up")
            assert fleet.read("still") == fleet.read("filed") == kept
            fleet.source.create_late()
            fleet.source.run(40)
            fleet.ends()
            late = f"{fleet.source.database}.late"
            with fleet.written_to():
                fleet.killed("bootstrap", "--tables", late, commits=2)
                (row,) = fleet.done("bootstrap", "--tables", late)
            assert row["state"] == "filled", "the service must not make it"
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
        for table, operation, count in (("everything", "SWAP", 2), ("still", "VERIFY SHADOW", 1)):
            history = fleet.lake.table(fleet.topic(table)).history()
            assert [entry.info.operation for entry in history].count(operation) == count


@pytest.mark.nightly
def test_a_table_is_rebuilt_from_its_connectors_snapshot_though_older_records_are_gone(
    server: SourceServer, kafka_broker: str, tmp_path: Path, seed: int
) -> None:
    fleet = Fleet(server, kafka_broker, tmp_path, seed)
    name = f"{fleet.source.database}.everything"
    with fleet.running() as service:
        fleet.write("delete from everything limit 1", unheard=True)
        fleet.snapshot("everything")
        (row,) = fleet.rows("rebuild", name, "--from", "topic")
        assert (row["state"], "first records" in row["detail"]) == ("refused", True), row
        with fleet.written_to():
            fleet.killed("rebuild", name, "--from", "snapshot", commits=2)
        (row,) = fleet.done("rebuild", name, "--from", "snapshot")
        assert (row["state"], row["verified"]) == ("filled", "equal"), row
        take_in(service, fleet.lake, fleet.ends())
        fleet.equal()
    history = fleet.lake.table(fleet.topic("everything")).history()
    assert [entry.info.operation for entry in history].count("SWAP") == 2


@pytest.mark.nightly
@pytest.mark.parametrize("life", range(_LIVES))
def test_a_rebuild_killed_at_any_stage_ends_with_the_table_equal_to_its_source(
    server: SourceServer,
    kafka_broker: str,
    tmp_path: Path,
    seed: int,
    life: int,
    request: pytest.FixtureRequest,
) -> None:
    fleet = Fleet(server, kafka_broker, tmp_path, seed + life)
    chance = random.Random(seed + life)
    left = math.ceil(min(_KILLS_MAX, request.config.getoption("--kills")) / _LIVES)
    names = [table.name for table in fleet.source.tables]
    with fleet.running() as service:
        while left > 0:
            table, before = chance.choice(names), left
            with fleet.written_to():
                for stage in chance.sample(_STAGES, chance.randint(1, len(_STAGES))):
                    left -= fleet.killed_at(stage, table, chance)
            fleet.ends()
            (row,) = fleet.done("rebuild", f"{fleet.source.database}.{table}")
            # Without a comparison it became the table before the kill.
            assert (row["state"], row["verified"] in ("equal", "")) == ("filled", True), row
            take_in(service, fleet.lake, fleet.ends())
            fleet.equal()
            assert left < before, "no kill met a command that was at work"


@pytest.mark.nightly
def test_the_service_finds_a_row_that_was_changed_behind_its_back_and_it_is_repaired(
    server: SourceServer,
    kafka_broker: str,
    tmp_path: Path,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet = Fleet(server, kafka_broker, tmp_path, seed)
    address = f"mysql://{server.user}@{server.host}:{server.port}"
    fleet.lake.configure(
        verify={"every": "60s", "databases": {fleet.prefix: address}, "wait": "30s"}
    )
    monkeypatch.setenv("MYSQL_PWD", server.password)
    with fleet.running():
        fleet.equal()
        finds_and_repairs(fleet)


def finds_and_repairs(fleet: Fleet) -> None:
    """One table alone is found to differ, and only in what was changed."""
    begun_ms = round(time.time() * 1000)
    with fleet.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set sql_log_bin = 0")
        change = "set n_int = if(n_int = 7, 8, 7) order by id limit 1"
        cursor.execute(f"update {fleet.source.database}.everything {change}")
        connection.commit()
    tables = {table.name for table in fleet.source.tables}

    def all_compared() -> bool:
        fleet.source.mark()
        found = fleet.results()
        return all(name in found and found[name].ended_ms > begun_ms + 20_000 for name in tables)

    until(all_compared, "each table is compared again", 240.0)
    different = {name for name, one in fleet.results().items() if one.different}
    assert different == {"everything"}
    found = fleet.verified("everything", "--repair")
    assert (found["repaired"], [one["columns"] for one in found["differences"]]) == (1, [["n_int"]])
    fleet.equal()
    assert fleet.verified("everything")["outcome"] == "equal"
