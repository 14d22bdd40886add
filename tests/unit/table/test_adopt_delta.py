"""Adoption of Delta tables: features, times of commits, and versions from before it."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.errors import (
    CorruptFileError,
    LakespliceError,
    RetryableError,
    UnsupportedError,
)
from lakesplice.formats.log.actions import TableMetadata
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.planning.by_hand.hand_fed_schema import adopted_schema
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.adoption.adopt import adopt_table
from lakesplice.table.protocol.intents import Adopt
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.transitions import transition
from lakesplice.table.protocol.transitions.parts import CommitPoint
from lakesplice.table.reading.changes import changes_of
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Fault, FaultyStore, How
from tests.support.adopting import TWO, by_deltalake, refusal


def delta(path: Path, **change: Any) -> Path:
    """A Delta table whose first commit has other metadata or another protocol."""
    deltalake.write_deltalake(str(path), TWO)
    log = path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        for name, values in change.items():
            if name in line:
                line[name] |= values
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("zone", ["", "Z"])
def test_a_moment_without_its_zone_in_the_log_is_refused(tmp_path: Path, zone: str) -> None:
    moment = dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC)
    rows = pa.table({"id": [1], "at": pa.array([moment], pa.timestamp("us", "UTC"))})
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=["at"])
    log = tmp_path / commit_path(0)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    assert add["partitionValues"] == {"at": "2024-03-31 02:30:00.000000"}
    add["partitionValues"] = {"at": f"2024-03-31T02:30:00.000000{zone}"}
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    if zone:
        assert Table.adopt(tmp_path, key=["id"]).read()["at"].to_pylist() == [moment]
    else:
        assert "isn't one exact timestamp" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, "minReaderVersion"),
        (
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors"],
                    "writerFeatures": ["deletionVectors"],
                }
            },
            "APPLY (PURGE)",
        ),
        (
            {"protocol": {"minWriterVersion": 7, "writerFeatures": ["icebergCompatV2"]}},
            "DROP FEATURE icebergCompatV2",
        ),
        ({"metaData": {"configuration": {"delta.appendOnly": "true"}}}, "delta.appendOnly"),
        ({"metaData": {"configuration": {"delta.constraints.c": "id > 0"}}}, "CONSTRAINT c"),
        (
            {"metaData": {"configuration": {"delta.enableChangeDataFeed": "true"}}},
            "delta.enableChangeDataFeed",
        ),
        (
            {"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}},
            "column mapping",
        ),
        (
            {
                "metaData": {
                    "schemaString": '{"type":"struct","fields":[{"name":"id","type":"long",'
                    '"nullable":true,"metadata":{"delta.generationExpression":"1"}},'
                    '{"name":"m","type":{"type":"map"},"nullable":true,"metadata":{}}]}'
                }
            },
            "generation expression; make it a plain column; column 'm' is of the type map",
        ),
        ({"add": {"path": "/elsewhere/a.parquet"}}, "make a deep clone first"),
    ],
)
def test_a_delta_table_with_features_that_would_be_lost_is_refused(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    assert told in refusal(delta(tmp_path, **change))


def test_a_domain_of_another_feature_is_refused(tmp_path: Path) -> None:
    delta(tmp_path)
    added = {"domainMetadata": {"domain": "delta.clustering", "configuration": "{}"}}
    (tmp_path / commit_path(1)).write_text(json.dumps(added) + "\n")
    assert "delta.clustering" in refusal(tmp_path)


def test_a_feature_that_is_not_in_use_is_no_obstacle(tmp_path: Path) -> None:
    features = ["appendOnly", "invariants", "changeDataFeed", "checkConstraints"]
    properties = {
        "delta.minWriterVersion": "7",
        "delta.feature.appendOnly": "supported",
        "ours": "x",
    }
    protocol = {"minWriterVersion": 7, "writerFeatures": features}
    delta(tmp_path, protocol=protocol, metaData={"configuration": properties})
    table = Table.adopt(tmp_path, key=["id"])
    kept = table.snapshot.log.metadata.properties
    assert kept["ours"] == "x"
    assert not any(name.startswith(("delta.feature", "delta.min")) for name in kept)
    assert kept["delta.inCommitTimestampEnablementVersion"] == "1"


@pytest.mark.parametrize("version", [0, 3])
@pytest.mark.parametrize("were_kept", [True, False])
def test_the_log_says_from_which_version_on_commits_have_their_times(
    version: int, were_kept: bool
) -> None:
    """A reader takes the times of older commits from their files; without an older one, or if the
    table has had times before, there is nothing to say.
    """
    name = "delta.inCommitTimestampEnablement"
    had = {"delta.enableInCommitTimestamps": "true", f"{name}Version": "1"} if were_kept else {}
    schema = adopted_schema(TWO.schema, ["id"])
    intent = Adopt(1, schema, (), (), (), had, log_retention_hours=24)
    moment = CommitPoint(version, EpochMs(77), TableMetadata("id", "{}"))
    (metadata,) = (
        action
        for action in transition(Manifest(1), intent, moment).actions
        if isinstance(action, TableMetadata)
    )
    assert metadata.properties["delta.enableInCommitTimestamps"] == "true"
    told = {k: v for k, v in metadata.properties.items() if k.startswith(name)}
    if were_kept:
        assert told == {f"{name}Version": "1"}
    else:
        assert told == ({f"{name}Version": "3", f"{name}Timestamp": "77"} if version else {})


def test_a_data_file_of_another_size_than_the_log_says_is_refused(tmp_path: Path) -> None:
    delta(tmp_path, add={"size": 17})
    with pytest.raises(CorruptFileError, match="another size"):
        Table.adopt(tmp_path, key=["id"])


def test_a_commit_by_another_writer_meanwhile_is_noticed(tmp_path: Path) -> None:
    delta(tmp_path)

    def write(call: Call) -> bool:
        if call.method == "put_new":
            deltalake.write_deltalake(str(tmp_path), TWO, mode="append")
        return False

    store = FaultyStore(LocalStore(tmp_path), [Fault(write, How.LOST)])
    with pytest.raises(RetryableError, match="another program committed to the table meanwhile"):
        adopt_table(store, ["id"], FixedClock(), SeededEntropy(1))
    assert len(list(deltalake.DeltaTable(str(tmp_path)).history())) >= 2


@pytest.mark.slow
def test_the_feed_of_changes_begins_with_the_adopted_rows(tmp_path: Path) -> None:
    by_deltalake(tmp_path / "t")
    table = Table.adopt(tmp_path / "t", key=["id"])
    first = table.version
    table.upsert(pa.table({"id": [1], "name": ["x"]}))
    found = table.changes(first).read_all()
    assert found.filter(pa.compute.equal(found["_commit_version"], first)).num_rows == 3000
    assert found["_change_type"].to_pylist()[-1] == "update_postimage"
    store, schema = LocalStore(tmp_path / "t"), table.snapshot.manifest.schema
    with pytest.raises(UnsupportedError, match="another writer"):
        list(changes_of(store, first - 1, ["id"], schema))


@pytest.mark.slow
def test_versions_before_the_adoption_stay_with_other_readers(tmp_path: Path) -> None:
    by_deltalake(tmp_path / "t")
    table = Table.adopt(tmp_path / "t", key=["id"])
    assert deltalake.DeltaTable(str(tmp_path / "t"), version=0).to_pyarrow_table().num_rows == 1000
    with pytest.raises(LakespliceError):
        table.read(version=0)
    assert table.read(version=table.version).num_rows == 3000
    assert next(iter(table.history())).info.operation == "ADOPT"


@pytest.mark.slow
def test_a_vacuum_keeps_adopted_files_and_takes_what_only_older_versions_name(
    tmp_path: Path,
) -> None:
    by_deltalake(tmp_path / "t")
    table = Table.adopt(tmp_path / "t", key=["id"])
    table.upsert(pa.table({"id": [1], "name": ["x"]}))
    table.compact()
    # No version is older than another one of its millisecond.
    tools = table._writer.tools
    table._writer.tools = replace(tools, clock=FixedClock(tools.clock.now_ms() + 1))
    would = table.vacuum(retention_hours=0, dry_run=True, readers_may_fail=True)
    table.vacuum(retention_hours=0, readers_may_fail=True)
    named = {path for path in table.snapshot.manifest.files if "/" not in path}
    there = {file.name for file in (tmp_path / "t").glob("*.parquet")}
    assert named <= there
    assert len(would.expired) >= 1
    assert table.read().num_rows == 3000
