"""The demo's folder and the service's configuration in it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakesplice.config import Settings, load
from lakesplice.testing.servers.process import free_port

# Short intervals, so that a minute shows what a day would.
_CONFIG: Final = """\
# What the demo's service runs with, as long as the demo's broker runs. With servers of your own:
# lakesplice run --config FILE
kafka:
  bootstrap_servers: "127.0.0.1:{kafka_port}"
  topic_pattern: "shop\\\\..*"
  topic_poll_seconds: 1
lake:
  root: {lake}
trigger: 1
stop_timeout: 20
compaction:
  deltas_max: 5
  age_max: 5
  poll_seconds: 0.5
metrics:
  port: {page_port}
spark:
  driver_memory: 1g
logging:
  level: {log_level}
"""
# The connector's topic tells of changes of tables that no row shows; its signals are no data.
_OF_A_CONNECTOR: Final = """\
tables:
  - match: shop.signals
    read: false
schema_change_topics:
  names: [shop]
  bigint_unsigned_handling_mode: precise
doctor:
  connect_url: "{connect_url}"
  database: "mysql://{database}"
"""


@dataclass(frozen=True)
class DemoFolders:
    """The folders of the demo."""

    folder: Path

    @property
    def lake(self) -> Path:
        """The tables."""
        return self.folder / "lake"

    @property
    def broker(self) -> Path:
        """Kafka's data and log."""
        return self.folder / "kafka"

    @property
    def database(self) -> Path:
        """The data of the database, if the demo has one."""
        return self.folder / "mariadb"

    @property
    def connect(self) -> Path:
        """The connector's offsets and its log, if the demo has one."""
        return self.folder / "connect"

    @property
    def config(self) -> Path:
        """The service's configuration."""
        return self.folder / "lakesplice.yaml"


def prepare(places: DemoFolders) -> Settings:
    """Empty the claimed folder of an earlier demo, and return the settings that the demo runs
    with.
    """
    config = _CONFIG.format(
        kafka_port=free_port(), page_port=0, lake=_quoted(places.lake), log_level="warning"
    )
    return _prepared(places, config)


def prepare_served(
    places: DemoFolders, *, kafka_port: int, page_port: int, connect_url: str, database: str
) -> Settings:
    """The same, for a service with these ports that follows a connector and logs what it does.

    `database` is the user and address of the source's server, for `lakesplice doctor`.
    """
    config = _CONFIG.format(
        kafka_port=kafka_port, page_port=page_port, lake=_quoted(places.lake), log_level="info"
    )
    more = _OF_A_CONNECTOR.format(connect_url=connect_url, database=database)
    return _prepared(places, config + more)


def _prepared(places: DemoFolders, config: str) -> Settings:
    for old in (places.lake, places.broker, places.database, places.connect):
        shutil.rmtree(old, ignore_errors=True)
    places.lake.mkdir(parents=True)
    places.config.write_text(config)
    return load(places.config)


def _quoted(path: Path) -> str:
    return json.dumps(str(path))
