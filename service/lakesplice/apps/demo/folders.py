"""The demo's folder and the service's configuration in it."""

from __future__ import annotations

import json
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakesplice.config import Settings, load
from lakesplice.errors import UsageError

_MARK: Final = ".lakesplice-demo"
# Short intervals, so that a minute shows what a day would.
_CONFIG: Final = """\
# What the demo ran with. Its broker has ended; with servers of your own: lakesplice run --config
# FILE
kafka:
  bootstrap_servers: "127.0.0.1:{port}"
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
  port: 0
spark:
  driver_memory: 1g
logging:
  level: warning
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
    def config(self) -> Path:
        """The service's configuration."""
        return self.folder / "lakesplice.yaml"


def prepare(places: DemoFolders) -> Settings:
    """Create the folder, empty, and return the settings that the demo runs with.

    An earlier demo in it is removed; `UsageError` if it contains anything else.
    """
    mark = places.folder / _MARK
    if mark.exists():
        for old in (places.lake, places.broker):
            shutil.rmtree(old, ignore_errors=True)
    elif places.folder.exists() and any(places.folder.iterdir()):
        raise UsageError(
            "the folder contains something else; name another one with --folder",
            folder=str(places.folder),
        )
    places.lake.mkdir(parents=True)
    mark.touch()
    places.config.write_text(_CONFIG.format(port=_free_port(), lake=json.dumps(str(places.lake))))
    return load(places.config)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
