"""What several modules begin with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakesplice.testing.simulation import SimulatedDriver
from tests.support.avro import captured_schemas
from tests.support.debezium import captured
from tests.support.workload import DECLARED, taken_in

Take = Callable[..., SimulatedDriver]
SomeOf = Callable[[int], list[int]]


@pytest.fixture
def some_of(request: pytest.FixtureRequest, seed: int) -> SomeOf:
    """Return a call that picks, of so many versions or statements, those that Spark reads or tries,
    which takes it seconds each: the last and every eighth, by the seed; nightly every one.
    """
    every = 1 if request.config.getoption("--nightly") else 8

    def some_of(versions: int) -> list[int]:
        return sorted({*range(seed % every, versions, every), versions - 1})

    return some_of


@pytest.fixture
def take(shared: Callable[..., Path], tmp_path: Path) -> Take:
    """Return a call that reads a table's topic as a connector with the named settings wrote it."""

    def take(capture: str, table: str, **more: Any) -> SimulatedDriver:
        records = captured(shared("examples", "captures", f"debezium-mariadb-{capture}.jsonl"))
        topic = f"{capture}.shop.{table}"
        partitions = [found for (name, _), found in records.items() if name == topic]
        declared = DECLARED.get(table) if capture in ("dbplain", "dbflat") else None
        schemas = None
        if capture == "dbavro":
            kept = shared("examples", "captures", "debezium-mariadb-dbavro.schemas.json")
            schemas = captured_schemas(kept)
        return taken_in(tmp_path / capture, topic, partitions, declared, schemas=schemas, **more)

    return take
