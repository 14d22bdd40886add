"""Engines that read Delta tables: the SQL dialect of each, and the statements before its first
table.

Athena speaks two dialects: Hive's for tables, Trino's for queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Engine(StrEnum):
    """An engine that views are written for."""

    SPARK = "spark"
    TRINO = "trino"
    ATHENA = "athena"
    DUCKDB = "duckdb"
    SNOWFLAKE = "snowflake"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL of an engine.

    `tables` and `queries` are sqlglot's names of the dialects. With `odd_names` a view's columns
    may have any name; without it only letters, digits and underscores. `notes` say what is required
    before the `setup`, which is run once.
    """

    tables: str
    queries: str
    odd_names: bool
    notes: tuple[str, ...]
    setup: tuple[str, ...] = ()


DIALECTS: Mapping[Engine, Dialect] = {
    Engine.SPARK: Dialect(
        "spark", "spark", odd_names=True, notes=("For a Spark session with the Delta connector.",)
    ),
    Engine.TRINO: Dialect(
        "trino",
        "trino",
        odd_names=True,
        notes=(
            "For a session whose catalog uses Trino's Delta Lake connector, with",
            "delta.register-table-procedure.enabled=true.",
        ),
    ),
    Engine.ATHENA: Dialect(
        "hive", "trino", odd_names=False, notes=("Athena runs one statement at a time.",)
    ),
    Engine.DUCKDB: Dialect(
        "duckdb", "duckdb", odd_names=True, notes=(), setup=("INSTALL delta", "LOAD delta")
    ),
    Engine.SNOWFLAKE: Dialect(
        "snowflake",
        "snowflake",
        odd_names=True,
        notes=("The external volume lakesplice must exist, and lead to the lake's folder.",),
        setup=(
            "CREATE CATALOG INTEGRATION IF NOT EXISTS lakesplice\n"
            "  CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = DELTA ENABLED = TRUE",
        ),
    ),
}
