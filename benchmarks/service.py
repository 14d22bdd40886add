"""The service as the benchmarks run it, and what its tables' logs say of when it committed."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lakesplice.config import Settings
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.history import HistoryEntry, history
from lakesplice.testing.shop.tables import WIDE

COMMAND = (sys.executable, "-c", "from lakesplice.apps.cli import main; main()")
COLUMNS = {column.name: column.declared for column in WIDE.columns}

# Benchmarks of ingest leave compaction out and state its cost by itself.
_NO_COMPACTION: dict[str, Any] = {
    "deltas_max": 10_000,
    "bytes_max": 2**40,
    "ratio_max": 100.0,
    "changes_per_page_min": 1_000_000,
    "age_max": "30d",
    "back_pressure_deltas": 100_000,
}


def settings(
    lake: Path,
    servers: str,
    pattern: str,
    size: int,
    *,
    trigger: str = "5m",
    cores: int = 2,
    deltas_max: int = _NO_COMPACTION["deltas_max"],
    tables: Sequence[Mapping[str, Any]] = (),
) -> Settings:
    """Return the settings of a service for topics of wide tables, and for other `tables`; by
    default it won't compact.
    """
    return Settings.model_validate(
        {
            "kafka": {
                "bootstrap_servers": servers,
                "topic_pattern": pattern,
                "offsets_per_batch_max": size,
            },
            "lake": {"root": str(lake)},
            "trigger": trigger,
            "spark": {"master": f"local[{cores}]"},
            "metrics": {"enabled": False},
            "compaction": {**_NO_COMPACTION, "deltas_max": deltas_max},
            "tables": [{"match": "shop.*", "columns": COLUMNS}, *tables],
        }
    )


def configuration(given: Settings) -> dict[str, Any]:
    """Return settings as the content of a configuration file."""
    return given.model_dump(mode="json", exclude_unset=True)


def ingests(lake: Path, table: str) -> list[HistoryEntry]:
    """Return the table's ingest commits, oldest first."""
    entries = history(LocalStore(lake / "shop" / table))
    return sorted(
        (entry for entry in entries if entry.info.operation == "INGEST"),
        key=lambda entry: entry.version,
    )


def seconds(entry: HistoryEntry) -> float:
    """Return when a version was committed, in seconds since the epoch."""
    assert entry.info.timestamp_ms is not None
    return entry.info.timestamp_ms / 1000


def offsets(entry: HistoryEntry) -> Mapping[str, int]:
    """Return each partition's next offset at a version."""
    parsed: dict[str, int] = json.loads(entry.info.parameters["offsets"])
    return parsed
