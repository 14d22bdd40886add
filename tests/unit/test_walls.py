"""What ARCHITECTURE says a folder must not know is refused by the import contracts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine import ROOT

# A module, what it must not import, and the contract that says so.
PLANTED = (
    ("model.names", "os", "At and below planning"),
    ("planning.rows.fold", "time", "At and below planning"),
    ("formats.checksum", "pathlib", "At and below planning"),
    ("model.address", "lakesplice.planning.rows.fold", "Imports point down the house"),
    ("model.progress.epochs", "lakesplice.model.manifest", "Values rest on smaller values"),
    ("model.position", "lakesplice.model.moments", "Values rest on smaller values"),
    ("planning.sources.gtids", "lakesplice.table.protocol.layout", "Imports point down the house"),
    ("formats.deltas.codec", "lakesplice.formats.manifests", "No format knows another"),
    ("formats.events.maxwell.reader", "lakesplice.formats.events.canal", "Formats of change"),
    ("formats.events.cells.decimals", "lakesplice.formats.events.ddl.tokens", "Formats of change"),
    (
        "formats.events.values.encoding",
        "lakesplice.formats.events.json_reading",
        "Formats of change",
    ),
    ("planning.rows.edits", "lakesplice.planning.schema.policy", "Rooms of planning"),
    ("planning.shape.masks", "lakesplice.planning.schema.policy", "Rooms of planning"),
    ("planning.schema.policy", "lakesplice.planning.intake.report", "Rooms of planning"),
    ("planning.intake.line", "lakesplice.planning.intake.read_rows", "Rooms of intake"),
    ("planning.intake.order.truncations", "lakesplice.planning.intake.report", "Rooms of intake"),
    (
        "planning.intake.order.truncations",
        "lakesplice.planning.intake.order.shared_positions",
        "Findings about the order",
    ),
    (
        "planning.upkeep.retention",
        "lakesplice.planning.by_hand.hand_fed_changes",
        "Rooms of planning",
    ),
    ("splicing.verify", "os", "Splicing opens nothing"),
    ("splicing.thrift.compact", "lakesplice.splicing.columns.editing", "A splice is built"),
    ("table.protocol.layout", "time", "The protocol performs no effect"),
    ("table.upkeep.vacuum", "os", "The protocol performs no effect"),
    ("table.upkeep.purge", "lakesplice.storage.local", "Imports point down the house"),
    ("table.protocol.ports", "lakesplice.table.files.base_files", "Rooms of the protocol"),
    (
        "table.protocol.preconditions.rows",
        "lakesplice.table.protocol.transitions.rows",
        "Rooms of commits",
    ),
    ("table.protocol.intents.rows", "lakesplice.table.protocol.outcomes", "Rooms of commits"),
    (
        "table.protocol.transitions.upkeep",
        "lakesplice.table.protocol.transitions.tables",
        "Intents, preconditions and",
    ),
    ("table.files.inner_tables", "lakesplice.table.upkeep.vacuum", "Rooms of the protocol"),
    ("table.reading.scan", "lakesplice.table.ingest.append", "Rooms of the protocol"),
    ("table.driver.status", "lakesplice.table.upkeep.purge", "Rooms of the protocol"),
    (
        "table.by_hand.upserts.located_rows",
        "lakesplice.table.by_hand.edits.merge",
        "The object of a table fed by hand",
    ),
    (
        "table.by_hand.writer",
        "lakesplice.table.by_hand.hand_fed_table",
        "The object of a table fed by hand",
    ),
    ("table.upkeep.mirroring.mirror", "pyiceberg", "The protocol performs no effect"),
    ("storage.local", "pyspark", "Storage knows no engine"),
    ("storage.objects", "lakesplice.storage.iceberg.schemas", "Rooms of storage"),
    ("storage.source.tables", "lakesplice.storage.stores", "Rooms of storage"),
    ("storage.local", "lakesplice.storage.objects", "Rooms of storage"),
    ("storage.copying", "lakesplice.telemetry.http", "Imports point down the house"),
    ("spark.jobs.rewrites", "obstore", "Spark moves data"),
    ("spark.jars", "lakesplice.storage.system", "Imports point down the house"),
    ("telemetry.http", "lakesplice.apps.lake", "Imports point down the house"),
    ("telemetry.registry", "lakesplice.model.names", "Telemetry knows names"),
    ("config.sections.kafka", "pyspark", "Settings are values"),
    ("config.sections.watching", "lakesplice.config.settings", "Sections of the configuration"),
    ("config.sections.kafka", "lakesplice.config.sections.upkeep", "A section of the config"),
    ("apps.service.upkeep.purges", "lakesplice.apps.service.batching", "Rooms of the service"),
    (
        "apps.service.status.status_reporter",
        "lakesplice.apps.service.page.service_answers",
        "Rooms of the service",
    ),
    (
        "apps.service.tables.tables",
        "lakesplice.apps.service.sources.connectors",
        "Rooms of the service",
    ),
    (
        "apps.service.tables.gauges",
        "lakesplice.apps.service.tables.service_table",
        "What is reported about a table",
    ),
    ("config.options", "lakesplice.telemetry.logs", "Settings are values"),
    ("testing.compare", "lakesplice.apps.lake", "Imports point down the house"),
    ("apps.lake", "lakesplice.apps.library.table", "Programs rest on what they share"),
    ("apps.record_reading", "lakesplice.apps.service.driver", "Programs rest on what they share"),
    ("apps.library.new_file", "pyspark", "The library starts no engine"),
    (
        "apps.cli.options",
        "lakesplice.apps.cli.tables.showing.listing",
        "Commands know no other command",
    ),
    ("apps.cli.tables.adopting", "lakesplice.apps.cli.tables.upkeep", "A command about tables"),
    (
        "apps.cli.tables.indexes",
        "lakesplice.apps.cli.tables.showing.views",
        "A command about tables",
    ),
    (
        "apps.cli.tables.showing.views",
        "lakesplice.apps.cli.tables.showing.listing",
        "A command that shows",
    ),
    ("spark.jobs.batch", "lakesplice.spark.kafka.topics", "What runs in Spark"),
    ("spark.session", "lakesplice.spark.kafka.query", "What runs in Spark"),
    ("splicing.thrift.compact", "lakesplice.splicing.structures.footer", "A splice is built"),
)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy of the package with all of these imports in it."""
    copy = tmp_path_factory.mktemp("walls") / "lakesplice"
    shutil.copytree(ROOT / "service" / "lakesplice", copy, ignore=_no_caches)
    for module, imported, _ in PLANTED:
        path = copy.joinpath(*module.split(".")).with_suffix(".py")
        path.write_text(f"{path.read_text()}\nimport {imported}\n")
    done = subprocess.run(
        [
            Path(sys.executable).with_name("lint-imports"),
            *("--no-cache", "--no-logo", "--config", ROOT / "pyproject.toml"),
        ],
        cwd=copy.parent,
        env={**os.environ, "PYTHONPATH": str(copy.parent), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("module", "imported", "contract"), PLANTED)
def test_a_forbidden_import_is_refused(
    refused: str, module: str, imported: str, contract: str
) -> None:
    said = refused.split("Broken contracts", 1)[1]
    # Titles, underlined, alternate with what is said below them.
    parts = re.split(r"\n([^\n]+)\n-{5,}\n", said)
    below = dict(zip(parts[1::2], parts[2::2], strict=True))
    (title,) = [title for title in below if title.startswith(contract)]
    arrow = rf"- +lakesplice\.{re.escape(module)} -> {re.escape(imported)} "
    assert re.search(arrow, below[title]), below[title]


def _no_caches(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
