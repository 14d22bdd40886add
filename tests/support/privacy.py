"""Searches a service's output for what it must not contain: secrets of its configuration, and
values of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from lakesplice.errors import TableNotFoundError
from lakesplice.model.names import SYSTEM_COLUMNS
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import open_snapshot

SECRET = "planted-3f9c1e-secret"
"""Stands in the configuration of every service that a test starts."""
SECRETS = (SECRET, "hunter2")
"""What tests give as passwords, keys and tokens: no command and no service may write it."""
PLANTED: dict[str, dict[str, Any]] = {
    "kafka": {"options": {"ssl.key.password": SECRET}},
    "spark": {"options": {"spark.hadoop.fs.s3a.secret.key": SECRET}},
    "doctor": {"connect_user_info": f"somebody:{SECRET}"},
    "tracing": {"headers": {"authorization": SECRET}},
    # In memory, so that `doctor` finds nothing wrong with it.
    "iceberg": {"catalog": {"type": "sql", "uri": "sqlite://", "token": SECRET}},
    "masking": {"secret": SECRET},
}
NOT_PLANTED = {
    "lake.options": "only a lake in a bucket has them; those tests give their own",
    "metrics.token": "the page couldn't be asked without it; tests of the page give their own",
    "schema_registry.options": "refused without a registry; tests with one give their own",
    "verify.databases": "addresses with a password are refused",
}
"""Settings that could hold a secret, and why `PLANTED` lacks them."""
# Shorter ones may be words of a message.
_CHARS_MIN = 10
_FILES_MAX = 8
_WORD = re.compile(rf"[\w@.+ -]{{{_CHARS_MIN},}}")


def require_private(log: Path, lake: Path) -> None:
    """Raise `AssertionError` if a service's output has a secret, or a text of its tables' rows.

    Texts of ten characters and more count, of some base files of each table in a folder.
    """
    written = log.read_text(errors="replace")
    assert not [one for one in SECRETS if one in written], "a secret of the settings is in the log"
    told = sorted({text for text in _texts(lake) if text in written})
    assert not told, f"values of rows are in the log: {told[:5]}"


def _texts(lake: Path) -> Iterator[str]:
    """Yield the texts of some base files of each table, as far as they are no names."""
    names = {part for path in lake.glob("*/*") for part in path.parts}
    for table in lake.glob("*/*/_delta_log"):
        for file in _base_files(table.parent):
            rows = pl.read_parquet(file, hive_partitioning=False)
            for name, kind in rows.schema.items():
                if kind == pl.String and name not in SYSTEM_COLUMNS:
                    texts = rows[name].drop_nulls().unique().to_list()
                    yield from (one for one in texts if _WORD.search(one) and one not in names)


def _base_files(table: Path) -> list[Path]:
    """Some files that the newest version names: a killed service leaves others that are cut off."""
    try:
        manifest = open_snapshot(LocalStore(table)).manifest
    except TableNotFoundError:
        return []
    return [table / path for path in sorted(manifest.files)[:_FILES_MAX]]
