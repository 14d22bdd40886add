"""A real database's changes, through its real connector and Kafka, end in tables that equal it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.status import newest_status
from tests.support.apicurio import Apicurio
from tests.support.command_line import CommandLine
from tests.support.public_schemas import PublicSchemas
from tests.support.real_chain import Chain
from tests.support.running import RunningService, take_in
from tests.support.sources import SourceServer


@pytest.fixture
def server(mariadb: SourceServer) -> SourceServer:
    """The run's MariaDB."""
    return mariadb


def test_tables_equal_their_database_through_kills_and_schema_changes(
    server: SourceServer,
    kafka_broker: str,
    schema_registry: Apicurio,
    tmp_path: Path,
    seed: int,
    shared: Callable[..., Path],
    lakesplice: CommandLine,
    request: pytest.FixtureRequest,
) -> None:
    nightly = bool(request.config.getoption("--nightly"))
    public, published = PublicSchemas(server), shared("corpora", "databases")
    public.run("sakila", published / "sakila-schema.sql")
    chain = Chain(server, kafka_broker, schema_registry, tmp_path, seed, public=public)
    with chain.connect:
        with chain.lake.running(own_jvm=True) as service:
            public.run("sakila", published / "sakila-data.sql", rows_max=30 if nightly else 10)
            chain.run(20)
            chain.regroup_partitions()
            if nightly:
                take_in(service, chain.lake, chain.all_sent())
                chain.equal("real_time")
                the_doctor_asks_everybody(chain, server)
            grows_while_the_connector_dies(chain, kills=3 if nightly else 0)
            take_in(service, chain.lake, chain.all_sent())
            service.until(chain.drops_followed, "rows of dropped tables are gone")
            chain.equal("real_time")
            for form, source in chain.sources.items():
                source.create_late()
                source.add_column()
                source.widen_price()
                if form.renames:
                    source.rename_column()
                if source.moved:
                    source.move_rows()
            altered = {form: source.position() for form, source in chain.sources.items()}
            chain.run(10)
            parks_where_rows_moved(chain, service)
            service.until(lambda: chain.all_kept(altered), "the connectors keep how far they are")
            service.kill()
        chain.run(15)
        chain.drop_tables()
        chain.run(5)
        chain.connect.kill()
        chain.connect.start()
        chain.follow_moves(lakesplice)
        ends = chain.all_sent()
        with chain.lake.running() as service:
            take_in(service, chain.lake, ends)
            service.until(chain.drops_followed, "rows of dropped tables are gone")
            service.until(chain.moves_followed, "the snapshot's rows are there")
            chain.equal("real_time")
            service.until(chain.all_spliced, "every change is in its base file")
            service.terminate()
            service.ends_well()
    settings_that_change_values_are_shown(chain)
    # Every change is in its base file, so the real-time view is the same.
    chain.equal("read_optimised")
    assert not chain.public_differences()


def the_doctor_asks_everybody(chain: Chain, server: SourceServer) -> None:
    """It finds what is set otherwise than docs/connector.md says, beside the running service."""
    code, found = chain.lake.examined(
        *("--connect", chain.connect.url),
        *("--database", f"mysql://{server.user}@{server.host}:{server.port}"),
        password=server.password,
    )
    assert code == 1
    told = {(row["area"], row["check"], row["seen"].partition(":")[0]): row for row in found}
    wrong = {key for key, row in told.items() if row["verdict"] != "ok"}
    nulls = "value.converter.ignore.default.for.nullables"
    around = {key[:2] for key in wrong if key[0] in ("lake", "broker", "registry")}
    assert around == {("broker", "schema changes")}, "their topics expire, as the broker's others"
    assert {key for key in wrong if key[0] == "connector"} == {
        ("connector", "avro", f"{nulls} isn't true"),
        ("connector", "avro", "binlog.buffer.size=0 by default"),
        ("connector", "plain", "binlog.buffer.size=0 by default"),
    }
    assert {key[1] for key in wrong if key[0] == "database"} == {"grants"}
    assert {key[1] for key in told if key[0] == "database"} >= {"binlog", "positions", "row image"}
    assert any("debezium-avro" in key[2] for key in told if key[:2] == ("records", "format"))
    assert any(key[:2] == ("records", nulls) for key in wrong)


def settings_that_change_values_are_shown(chain: Chain) -> None:
    """Apicurio's converter makes defaults of nulls, and nothing else changes values here. Tables of
    Sakila have foreign keys that cascade.
    """
    status = newest_status(LocalStore(chain.lake.root))
    assert status is not None
    cascading = "foreign-key-cascades"
    noted = {topic.topic: [one.name for one in topic.suspect_settings] for topic in status.topics}
    assert any(cascading in names for name, names in noted.items() if name.endswith(".film_actor"))
    for topic in status.topics:
        filled = any(
            topic.topic.startswith(chain.prefix(form)) and not form.keeps_nulls
            for form in chain.sources
        )
        shown = ["value.converter.ignore.default.for.nullables"] if filled else []
        assert [name for name in noted[topic.topic] if name != cascading] == shown, topic.topic


def parks_where_rows_moved(chain: Chain, service: RunningService) -> None:
    """Each of the tables parks, and the reason says what to do."""
    service.until(chain.all_park_for_moves, "tables whose rows were moved park")
    for name, reason in chain.parked_for_moves().items():
        assert reason.code is ParkCode.ROWS_MOVED, name
        kind = "drop_partition" if name == "parted" else "rename_table"
        assert f"set schema_changes.{kind} to evolve" in reason.detail, name
        assert "new snapshot" in reason.detail, name


def grows_while_the_connector_dies(chain: Chain, kills: int) -> None:
    """Columns come, tables are dropped and made again, once or before each kill of the connector
    between statements, so that it repeats some.
    """
    for number in range(max(1, kills)):
        for source in chain.sources.values():
            source.add_column()
        chain.drop_tables()
        chain.run(4)
        if number < kills:
            chain.connect.kill()
            chain.run(8)
            chain.connect.start()
            chain.run(8)


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["described", "plain"])
def test_tables_whose_rows_were_moved_heal_by_a_new_snapshot_each_time(
    server: SourceServer,
    kafka_broker: str,
    schema_registry: Apicurio,
    tmp_path: Path,
    seed: int,
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    registry = schema_registry
    chain = Chain(server, kafka_broker, registry, tmp_path, seed, only=[form], moving=form)
    source = chain.sources[chain.moving]
    with chain.connect:
        with chain.lake.running() as service:
            chain.run(25)
            chain.regroup_partitions()
            take_in(service, chain.lake, chain.all_sent())
            chain.equal("real_time")
        for _ in range(2):
            chain.configure_moves("exception")
            with chain.lake.running() as service:
                source.move_rows()
                chain.run(9)
                chain.all_sent()
                parks_where_rows_moved(chain, service)
            chain.follow_moves(CommandLine(capsys))
            with chain.lake.running() as service:
                take_in(service, chain.lake, chain.all_sent())
                service.until(chain.moves_followed, "the snapshot's rows are there")
                chain.run(9)
                take_in(service, chain.lake, chain.all_sent())
                chain.equal("real_time")
        with chain.lake.running() as service:
            source.move_rows()
            source.snapshot(source.moved, "blocking")
            chain.run(9)
            take_in(service, chain.lake, chain.all_sent())
            service.until(chain.moves_followed, "the snapshot's rows are there")
            chain.equal("real_time")
            service.until(chain.all_spliced, "every change is in its base file")
    chain.equal("read_optimised")
