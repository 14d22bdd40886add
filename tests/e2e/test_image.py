"""The image, built from the Dockerfile and run, on a Debian made here or the base of --image-base.

pytest tests/e2e/test_image.py --image-base python:3.11-slim-bookworm
"""

from __future__ import annotations

import secrets
import signal
import socket
import urllib.request
from collections.abc import Iterator
from os import chown, kill
from pathlib import Path

import pytest
import yaml

from lakesplice import Table, __version__
from lakesplice.testing.compare import compare
from lakesplice.testing.shop import Database
from tests.support import image_inputs
from tests.support.container import Container, Image, image
from tests.support.ledgers import ledger
from tests.support.topics import Sender, make_topics
from tests.support.waiting import until

pytestmark = pytest.mark.nightly

USER = 10_001
CONFIGURATION = "/etc/lakesplice/lakesplice.yaml"
_START_SECONDS_MAX = 120.0


@pytest.fixture(scope="module")
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Image]:
    base = request.config.getoption("--image-base")
    with image(base, tmp_path_factory.mktemp("images")) as made:
        yield made


@pytest.fixture(scope="module")
def container(built: Image) -> Iterator[Container]:
    with built.container() as made:
        yield made


def test_the_image_prints_its_version(container: Container) -> None:
    done = container.run("version")
    assert (done.returncode, done.stdout) == (0, f"lakesplice {__version__}\n")


def test_the_image_runs_as_a_non_root_user_and_has_its_jars(
    built: Image, container: Container
) -> None:
    settings = built.settings()
    assert settings["User"] == f"{USER}:{USER}"
    assert settings["Cmd"] == ["run", "--config", CONFIGURATION]
    user = str(USER)
    assert container.shell("id -u; id -un", user=user).split() == [user, "lakesplice"]
    assert "kafka-clients" in container.shell("ls /opt/lakesplice/jars/*", user=user)
    leftovers = "command -v pip gcc make || ls -d /build || echo nothing"
    assert "nothing" in container.shell(leftovers, user=user)


def test_the_image_follows_a_topic_and_stops_cleanly_when_asked(
    container: Container, kafka_broker: str, tmp_path: Path
) -> None:
    prefix = f"image-{secrets.token_hex(4)}"
    database = Database([ledger()], server=prefix, database="shop")
    make_topics(kafka_broker, {database.topic("ledger"): 1})
    database.insert("ledger", [(key, f"row {key}", key, key, key * 1_000) for key in range(50)])
    database.update("ledger", [(7,)], lambda row: (row[0], "changed", *row[2:]))
    sender = Sender(kafka_broker)
    for event in database.drain():
        sender.send(event.topic, 0, event.key, event.value)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lake, scratch, configuration = (tmp_path / name for name in ("lake", "tmp", "settings.yaml"))
    for folder in (lake, scratch):
        folder.mkdir()
        chown(folder, USER, USER)
    settings = {
        "kafka": {"bootstrap_servers": kafka_broker, "topic_pattern": rf"{prefix}\..*"},
        "lake": {"root": "/lake"},
        "trigger": 0.5,
        "metrics": {"port": port},
        "spark": {"master": "local[2]", "driver_memory": "1g"},
    }
    configuration.write_text(yaml.safe_dump(settings))
    mounts = {lake: "/lake", scratch: "/tmp", configuration: f"{CONFIGURATION}:ro"}
    log = tmp_path / "service.log"
    with container.running(*("run", "--config", CONFIGURATION), mounts=mounts, log=log) as service:
        until(
            lambda: any(lake.glob("shop/ledger/_delta_log/*.json")),
            "the table",
            _START_SECONDS_MAX,
            works=lambda: service.poll() is None,
            said=log.read_text,
        )
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5)
        assert page.status == 200
        kill(container.init(service).pid, signal.SIGTERM)
        assert service.wait(90) == 0, log.read_text()
    rows = Table.open(lake / "shop" / "ledger").read()
    assert compare(database.truth("ledger"), rows, ["id"]) is None
    elsewhere = f"find / -xdev -user {USER} -not -path '/proc/*' -not -path '/lake*'"
    assert container.shell(f"{elsewhere} -not -path '/tmp*'", user="0") == ""


def test_the_digest_of_the_images_inputs_is_recorded(
    built: Image, request: pytest.FixtureRequest
) -> None:
    """The gate builds no image while this stays the same. Last here, so all before was shown."""
    assert not request.session.testsfailed, "an image that failed proves nothing"
    image_inputs.record()
    assert image_inputs.proved() == image_inputs.digest()
