"""Iceberg mirrors in a REST catalog: Iceberg's own server as a process, and a proxy before it that
loses requests and answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog.testing

from lakesplice.errors import ConfigurationError, StorageError
from lakesplice.planning.mirroring.columns import SchemaChange, mirror_schema
from lakesplice.storage.iceberg import rest_catalog
from lakesplice.storage.iceberg.catalog import forget_catalogs
from lakesplice.storage.system import SystemClock
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorCommit
from lakesplice.table.upkeep.mirroring.mirror_floor import delete_incarnations
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.s3_proxy import Fault, S3Proxy
from lakesplice.testing.servers.iceberg_rest import ICEBERG_REST, IcebergRestServer
from lakesplice.testing.servers.process import java_command
from tests.support import machine
from tests.support.mirror_life import Life
from tests.support.mirror_scene import MirroredScene
from tests.support.mirrored_versions import duckdb_reads, mirrored_life
from tests.support.mirrors import mirror_of, require_mirrored
from tests.support.partitioned import begun

NO_CHANGE = SchemaChange({}, {}, ())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRestServer]:
    jars, folder = machine.jars(ICEBERG_REST), tmp_path_factory.mktemp("rest")
    with IcebergRestServer(jars, folder, java=java_command()) as server:
        yield server


@pytest.fixture
def catalog(server: IcebergRestServer) -> Iterator[dict[str, str]]:
    """The properties of the server's catalog, of which each test gets an empty one."""
    server.start()
    forget_catalogs()
    yield server.properties()
    server.start()
    server.empty()


def test_pyiceberg_and_duckdb_read_each_version_from_a_rest_catalog(
    catalog: dict[str, str], tmp_path: Path
) -> None:
    mirrored = mirrored_life(tmp_path, catalog)
    for one in mirrored.state.snapshots:
        found = mirrored.state.handle.scan(snapshot_id=one.id).to_arrow()
        mirrored.require(found, one.version)
        mirrored.require(duckdb_reads(mirrored, one.id), one.version)
    assert len(mirrored.state.snapshots) == 7


def test_a_mirror_is_whole_whichever_request_or_answer_was_lost(
    server: IcebergRestServer,
    catalog: dict[str, str],
    tmp_path: Path,
    seed: int,
    request: pytest.FixtureRequest,
) -> None:
    every = 1 if request.config.getoption("--nightly") else 8
    with S3Proxy(server.port) as proxy:
        through = server.properties(proxy.endpoint)
        Life(tmp_path / "undisturbed", properties=catalog, through=through).play()
        count = len(proxy.seen())
        assert count > 15
        for how, fault in enumerate((Fault.LOST, Fault.ANSWER_LOST)):
            for fails in range((seed + how * 4) % every, count, every):
                server.empty()
                forget_catalogs()
                life = Life(tmp_path / f"{fault.name}-{fails}", properties=catalog, through=through)
                proxy.reset()
                proxy.fail_at(fails, fault)
                life.play()
                assert len(proxy.seen()) >= fails
                life.require_whole()


def test_a_commit_of_which_the_server_died_before_its_answer_is_not_repeated(
    server: IcebergRestServer, catalog: dict[str, str], tmp_path: Path
) -> None:
    with S3Proxy(server.port) as proxy:
        through = server.properties(proxy.endpoint)
        life = Life(tmp_path, properties=catalog, through=through)
        life.live(1, 2)
        life.follow()
        life.live(2, 3)
        proxy.fail(Fault.ANSWER_LOST, when=lambda asked: asked.method == "POST")
        snapshot = life.driver.table.snapshot
        assert snapshot is not None
        with pytest.raises(StorageError, match="doesn't answer"):
            life.mirror().follow(snapshot)
        server.kill()
        with pytest.raises(StorageError, match="doesn't answer"):
            life.mirror().follow(snapshot)
        server.start()
        state = life.catalog().load()
        assert state is not None
        assert len(state.snapshots) == 2
        life.require_current()


def test_a_commit_on_a_snapshot_that_another_one_replaced_changes_nothing(
    catalog: dict[str, str], tmp_path: Path
) -> None:
    life = Life(tmp_path, properties=catalog)
    life.live(1)
    life.follow()
    mirror = life.catalog()
    old = mirror.load()
    life.live(2)
    life.follow()
    snapshot = life.driver.table.snapshot
    assert old is not None
    assert snapshot is not None
    late = MirrorCommit(99, snapshot.timestamp_ms, [], frozenset(old.files))
    assert not mirror.commit(old, mirror_schema(snapshot.manifest.schema), NO_CHANGE, late)
    require_mirrored(life.bare, mirror, life.seen)
    life.require_current()


def test_a_table_that_was_dropped_in_the_catalog_begins_again(
    catalog: dict[str, str], tmp_path: Path
) -> None:
    life = Life(tmp_path, properties=catalog)
    life.live(1, 2)
    life.follow()
    life.catalog().drop()
    life.live(2, 3)
    life.require_current()


def test_a_mirror_begins_again_where_its_entry_is_left_but_its_metadata_is_gone(
    catalog: dict[str, str], tmp_path: Path
) -> None:
    life = Life(tmp_path, properties=catalog)
    life.live(1, 2)
    life.follow()
    delete_incarnations(life.bare, None)
    life.live(2, 3)
    life.require_current()


def test_the_lag_grows_while_the_server_is_away_and_then_the_mirror_catches_up(
    server: IcebergRestServer, catalog: dict[str, str], tmp_path: Path
) -> None:
    with S3Proxy(server.port) as proxy:
        scene = MirroredScene(tmp_path, catalog=server.properties(proxy.endpoint))
        scene.live(1, 2)
        assert scene.turn()
        scene.require_current()
        assert scene.lag() == 0
        proxy.fault = lambda _: Fault.LOST
        scene.live(2, 3)
        with structlog.testing.capture_logs() as logged:
            assert scene.turn()
            assert scene.turn(seconds=600)
        failures = [line["error"] for line in logged if line["event"] == "iceberg-failed"]
        assert len(failures) == 2
        assert all("doesn't answer" in failure for failure in failures)
        assert (scene.lag() or 0) >= 600
        proxy.fault = lambda _: None
        assert scene.turn(seconds=600)
        scene.require_current()
        assert scene.lag() == 0


def test_errors_say_whether_the_address_or_the_credentials_are_wrong(
    server: IcebergRestServer, catalog: dict[str, str], tmp_path: Path
) -> None:
    life = begun(tmp_path / "lake", SystemClock())
    with pytest.raises(ConfigurationError, match="refuses the credentials; set iceberg"):
        mirror_of({**catalog, "token": "guessed"}, life.store, life.driver.name)
    with pytest.raises(StorageError, match="doesn't answer; see that it runs"):
        mirror_of({**catalog, "uri": "http://127.0.0.1:1"}, life.store, life.driver.name)


def test_a_server_that_never_answers_is_given_up(
    server: IcebergRestServer,
    catalog: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rest_catalog, "ANSWER_SECONDS_MAX", 0.2)
    life = begun(tmp_path / "lake", SystemClock())
    with S3Proxy(server.port, late_seconds=1.0) as proxy:
        mirror = mirror_of(server.properties(proxy.endpoint), life.store, life.driver.name)
        proxy.fault = lambda _: Fault.LATE
        snapshot = life.driver.table.snapshot
        assert snapshot is not None
        with pytest.raises(StorageError, match="doesn't answer"):
            Mirror(life.store, mirror, SeededEntropy(3)).follow(snapshot)
