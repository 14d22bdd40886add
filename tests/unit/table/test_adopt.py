"""Adoption: what is refused, with what it says; what is rewritten; what is left untouched."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.apps.lake import require_lake
from lakesplice.errors import (
    CorruptFileError,
    LakespliceError,
    RetryableError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from lakesplice.formats.log.actions import TableMetadata
from lakesplice.model.manifest import Manifest
from lakesplice.planning.by_hand.hand_fed import adopted_schema
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.adopt import adopt_table, plan_adoption
from lakesplice.table.by_hand.adopted_files import look_into
from lakesplice.table.by_hand.adopted_keys import indexed
from lakesplice.table.protocol.intents import Adopt
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.transitions import CommitPoint, transition
from lakesplice.table.reading.changes import changes_of
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Fault, FaultyStore, How
from tests.support.adopting import by_deltalake, some_rows

TWO = pa.table({"id": [1, 2], "name": ["a", "b"]})


def folder(path: Path, **files: pa.Table) -> Path:
    path.mkdir(exist_ok=True)
    for name, rows in files.items():
        pq.write_table(rows, path / f"{name}.parquet")
    return path


def refusal(path: Path, key: str = "id") -> str:
    before = sorted(path.rglob("*"))
    with pytest.raises(LakespliceError) as planned:
        Table.adoption(path, key=[key])
    with pytest.raises(type(planned.value)) as done:
        Table.adopt(path, key=[key])
    assert str(done.value) == str(planned.value)
    assert [file for file in sorted(path.rglob("*")) if file in before] == before
    return str(done.value)


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


def test_repeated_keys_are_refused_with_their_number_and_some_of_them(tmp_path: Path) -> None:
    folder(tmp_path, a=TWO, b=pa.table({"id": [3, 2, 2], "name": ["c", "d", "e"]}))
    message = refusal(tmp_path)
    assert "rows=2" in message
    assert "examples=[{'id': 2}, {'id': 2}]" in message
    assert Table.adopt(tmp_path, key=["id", "name"]).read().num_rows == 5


def test_null_keys_are_refused_with_their_number_and_some_of_them(tmp_path: Path) -> None:
    folder(tmp_path, a=TWO, b=pa.table({"id": [None, 4, None], "name": ["c", "d", "e"]}))
    message = refusal(tmp_path)
    assert "rows=2" in message
    assert "row 0 of b.parquet" in message


def test_keys_are_looked_for_in_any_number_of_parts(tmp_path: Path) -> None:
    folder(tmp_path, a=some_rows(0, 700), b=some_rows(600, 900))
    store = LocalStore(tmp_path)
    of_both = adopted_schema(some_rows().schema, ["id"])
    files = {
        number: look_into(store, f"{name}.parquet", of_both, None)
        for number, name in enumerate("ab")
    }
    for size in (1 << 22, 100, 7):
        known: list[int] = []
        with pytest.raises(UsageError, match="rows=100"):
            known.extend(len(one.high) for one in indexed(store, of_both, files, size))
        assert sum(known) == 900


def test_a_key_that_there_is_not_is_refused(tmp_path: Path) -> None:
    assert "key" in refusal(folder(tmp_path, a=TWO), key="other")


def test_a_file_without_the_key_is_refused(tmp_path: Path) -> None:
    assert "b.parquet" in refusal(folder(tmp_path, a=TWO, b=pa.table({"name": ["x"]})))


def test_an_empty_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="nothing to adopt"):
        Table.adopt(tmp_path, key=["id"])


def test_a_table_of_ours_is_refused(tmp_path: Path) -> None:
    Table.create(tmp_path, TWO, key=["id"])
    assert "already" in refusal(tmp_path)


@pytest.mark.parametrize("name", [".hoodie", "metadata", "_spark_metadata"])
def test_files_that_other_metadata_lists_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "x").touch()
    assert name in refusal(folder(tmp_path, a=TWO))


def test_files_within_and_without_partitions_are_refused(tmp_path: Path) -> None:
    pq.write_to_dataset(TWO, tmp_path, partition_cols=["name"])
    assert "c.parquet is in no folder of a name" in refusal(folder(tmp_path, c=TWO))


def test_a_partition_is_not_hidden_by_the_first_letter_of_its_name(tmp_path: Path) -> None:
    pq.write_to_dataset(TWO.rename_columns(["id", "_name"]), tmp_path, partition_cols=["_name"])
    folder(tmp_path / "_temporary", a=TWO)
    folder(tmp_path / ".hidden", a=TWO)
    table = Table.adopt(tmp_path, key=["id"])
    assert sorted(table.read()["_name"].to_pylist()) == ["a", "b"]


def test_a_column_that_folders_are_named_by_and_files_have_is_refused(tmp_path: Path) -> None:
    folder(tmp_path / "name=a", a=TWO)
    assert "has a column 'name'" in refusal(tmp_path)


def test_partitions_of_a_folder_get_the_type_that_all_values_are_written_as(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "whole": ["-7", "0", None],
            "padded": ["01", "2", "3"],
            "day": ["2024-02-29", None, "0001-01-01"],
            "no_day": ["2024-02-30", "2024-01-01", "2024-01-01"],
            "odd": ["a=b/c", "", "%20"],
        }
    )
    by = [name for name in rows.column_names if name != "id"]
    pq.write_to_dataset(rows, tmp_path, partition_cols=by)
    would = dict(Table.adoption(tmp_path, key=["id"]).columns)
    types = {"whole": "long", "padded": "string", "day": "date", "no_day": "string"}
    assert would == {"id": "long", **types, "odd": "string"}
    found = Table.adopt(tmp_path, key=["id"]).read().sort_by("id")
    assert found["whole"].to_pylist() == [-7, 0, None]
    assert found["padded"].to_pylist() == ["01", "2", "3"]
    assert found["day"].to_pylist() == [dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]
    assert found["odd"].to_pylist() == ["a=b/c", None, "%20"]


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
        assert "can't be read as one exact timestamp" in refusal(tmp_path)


def respelt(path: Path) -> str:
    """Let the log of a Delta table of one file spell its path as nobody else would."""
    log = path / commit_path(0)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    spelt: str = "%" + format(ord(add["path"][0]), "x") + add["path"][1:]
    add["path"] = spelt
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return spelt


def test_a_file_that_stays_under_a_name_in_unusual_escapes_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), TWO)
    respelt(tmp_path)
    assert "unusual escapes" in refusal(tmp_path)


def test_a_file_that_is_written_anew_leaves_the_log_under_the_name_that_it_had(
    tmp_path: Path,
) -> None:
    one = TWO.slice(0, 1)
    deltalake.write_deltalake(str(tmp_path), one, partition_by=["name"])
    spelt = respelt(tmp_path)
    table = Table.adopt(tmp_path, key=["id"])
    log = (tmp_path / commit_path(table.version)).read_text().splitlines()
    (removed,) = (line["remove"] for line in map(json.loads, log) if "remove" in line)
    assert (removed["path"], removed["partitionValues"]) == (spelt, {"name": "a"})
    assert deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist() == [1]


@pytest.mark.parametrize("keyed", ["id", "name"])
def test_keys_in_partitions_are_indexed(tmp_path: Path, keyed: str) -> None:
    deltalake.write_deltalake(str(tmp_path), TWO, partition_by=[keyed])
    table = Table.adopt(tmp_path, key=[keyed])
    table.upsert(pa.table({"id": [2, 3], "name": ["b", "c"]}), delete=TWO.select([keyed])[:1])
    assert table.read(columns=["id", "name"]).sort_by("id").to_pydict() == {
        "id": [2, 3],
        "name": ["b", "c"],
    }


def test_a_null_partition_is_no_key(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "name": ["a", None]})
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=["name"])
    assert "row 0 of name=__HIVE_DEFAULT_PARTITION__" in refusal(tmp_path, "name")


def test_a_file_of_a_partition_that_can_t_stay_is_written_anew_whole(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.uint16()), "name": ["a", "b"]})
    pq.write_to_dataset(rows, tmp_path, partition_cols=["name"])
    table = Table.adopt(tmp_path, key=["id"])
    assert table.read(columns=["id", "name"]).sort_by("id").to_pydict() == rows.to_pydict()


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    folder(tmp_path, a=TWO)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 of a kind PAR1")
    assert "b.parquet" in refusal(tmp_path)


def test_all_that_stands_in_the_way_of_a_folder_is_told_at_once(tmp_path: Path) -> None:
    one = pa.table({"id": [1], "tags": [["x"]], "a b": [1], "n": [1]})
    message = refusal(folder(tmp_path, a=one, b=pa.table({"id": [2], "n": ["x"]})))
    for part in ("'tags'", "'a b'", "'n' is int64 in a.parquet and string in b.parquet"):
        assert part in message


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
        ({"add": {"path": "/elsewhere/a.parquet"}}, "a clone must be a deep one"),
    ],
)
def test_what_we_would_not_keep_of_a_delta_table_is_refused(
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
def test_it_is_said_from_where_on_commits_have_their_times(version: int, were_kept: bool) -> None:
    """A reader takes the times of older commits from their files; without an older one, or if the
    table has had times before, there is nothing to say.
    """
    name = "delta.inCommitTimestampEnablement"
    had = {"delta.enableInCommitTimestamps": "true", f"{name}Version": "1"} if were_kept else {}
    schema = adopted_schema(TWO.schema, ["id"])
    intent = Adopt(1, schema, (), (), (), had, log_retention_hours=24)
    moment = CommitPoint(version, 77, TableMetadata("id", "{}"))
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


UNKNOWN_TO_DELTA = {
    "unsigned": pa.array([1, 2], pa.uint32()),
    "without_zone": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2, pa.timestamp("us")),
    "nanoseconds": pa.array(
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2, pa.timestamp("ns", tz="UTC")
    ),
    "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    "half": pa.array([1.5, 2.5], pa.float32()).cast(pa.float16()),
}


@pytest.mark.parametrize("kind", UNKNOWN_TO_DELTA)
def test_a_file_with_a_type_unknown_to_delta_readers_is_written_anew(
    tmp_path: Path, kind: str
) -> None:
    folder(
        tmp_path,
        a=TWO.append_column("c", UNKNOWN_TO_DELTA[kind]),
        b=TWO.set_column(0, "id", pa.array([3, 4])),
    )
    would = Table.adoption(tmp_path, key=["id"])
    assert would.rewritten.keys() == {"a.parquet"}
    table = Table.adopt(tmp_path, key=["id"])
    assert {path.partition("/")[0] for path in table.snapshot.manifest.files} == {
        "base",
        "b.parquet",
    }
    found = table.read().sort_by("id")
    assert found["id"].to_pylist() == [1, 2, 3, 4]
    assert found["c"].null_count == 2
    theirs = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert pa.table(theirs).sort_by("id")["c"].to_pylist() == found["c"].to_pylist()
    table.upsert(pa.table({"id": [1, 3], "name": ["x", "y"]}))
    table.compact()
    assert table.read().sort_by("id")["name"].to_pylist() == ["x", "b", "y", "b"]


def test_numbers_of_several_widths_become_the_widest(tmp_path: Path) -> None:
    narrow = TWO.append_column("n", pa.array([1, None], pa.int16()))
    wide = pa.table({"id": [3], "name": ["c"], "n": pa.array([1 << 40])})
    table = Table.adopt(folder(tmp_path, a=narrow, b=wide), key=["id"])
    assert table.schema.field("n").type == pa.int64()
    assert table.read().sort_by("id")["n"].to_pylist() == [1, None, 1 << 40]


def test_values_that_no_column_can_hold_are_refused(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.timestamp("ns", tz="UTC"))
    folder(tmp_path, a=TWO.append_column("at", times))
    with pytest.raises(UsageError, match="cannot"):
        Table.adopt(tmp_path, key=["id"])


def test_a_file_without_a_column_shows_nulls(tmp_path: Path) -> None:
    table = Table.adopt(folder(tmp_path, a=TWO, b=pa.table({"id": [3]})), key=["id"])
    assert table.read().sort_by("id")["name"].to_pylist() == ["a", "b", None]
    table.upsert(pa.table({"id": [3], "name": ["c"]}))
    table.compact()
    assert table.read().sort_by("id")["name"].to_pylist() == ["a", "b", "c"]


def test_files_of_large_strings_and_dictionaries_stay_as_they_are(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": pa.array(["a", "b"], pa.large_string()),
            "c": pa.array(["x", "y"]).dictionary_encode(),
            "v": pa.array([b"x", None], pa.large_binary()),
        }
    )
    folder(tmp_path, a=rows)
    assert not Table.adoption(tmp_path, key=["id"]).rewritten
    table = Table.adopt(tmp_path, key=["id"])
    table.upsert(pa.table({"id": ["b"], "c": ["z"]}))
    assert table.read()["c"].to_pylist() == ["x", "z"]
    table.compact()
    assert table.read(view="read_optimised")["c"].to_pylist() == ["x", "z"]
    assert table.read()["v"].to_pylist() == [b"x", None]


def test_a_commit_by_another_writer_meanwhile_is_noticed(tmp_path: Path) -> None:
    delta(tmp_path)

    def write(call: Call) -> bool:
        if call.method == "put_new":
            deltalake.write_deltalake(str(tmp_path), TWO, mode="append")
        return False

    store = FaultyStore(LocalStore(tmp_path), [Fault(write, How.LOST)])
    with pytest.raises(RetryableError, match="written to meanwhile"):
        adopt_table(store, ["id"], FixedClock(), SeededEntropy(1))
    assert len(list(deltalake.DeltaTable(str(tmp_path)).history())) >= 2


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


def test_versions_before_the_adoption_stay_with_other_readers(tmp_path: Path) -> None:
    by_deltalake(tmp_path / "t")
    table = Table.adopt(tmp_path / "t", key=["id"])
    assert deltalake.DeltaTable(str(tmp_path / "t"), version=0).to_pyarrow_table().num_rows == 1000
    with pytest.raises(LakespliceError):
        table.read(version=0)
    assert table.read(version=table.version).num_rows == 3000
    assert next(iter(table.history())).info.operation == "ADOPT"


def test_a_vacuum_keeps_adopted_files_and_takes_what_only_older_versions_name(
    tmp_path: Path,
) -> None:
    by_deltalake(tmp_path / "t")
    table = Table.adopt(tmp_path / "t", key=["id"])
    table.upsert(pa.table({"id": [1], "name": ["x"]}))
    table.compact()
    would = table.vacuum(retention_hours=0, dry_run=True, readers_may_fail=True)
    table.vacuum(retention_hours=0, readers_may_fail=True)
    named = {path for path in table.snapshot.manifest.files if "/" not in path}
    there = {file.name for file in (tmp_path / "t").glob("*.parquet")}
    assert named <= there
    assert len(would.expired) >= 1
    assert table.read().num_rows == 3000


def test_what_holds_tables_or_is_within_one_is_no_table(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    inner = Table.create(tmp_path / "shop/orders", rows, key=["id"])
    inner.upsert(pa.table({"id": [1]}))
    inner.compact()  # its former base file is still there
    for outer in (tmp_path, tmp_path / "shop"):
        for call in (
            lambda at: Table.adopt(at, key=["id"]),
            lambda at: Table.adoption(at, key=["id"]),
            lambda at: Table.create(at, rows, key=["id"]),
        ):
            with pytest.raises(UsageError, match="holds other tables in it"):
                call(outer)
    with pytest.raises(UsageError, match="a folder above is a table"):
        Table.create(tmp_path / "shop/orders/base/more", rows, key=["id"])
    for lake in (tmp_path / "shop/orders", tmp_path / "shop"):
        with pytest.raises(UsageError, match="is a table"):
            require_lake(LocalStore(lake))
    require_lake(LocalStore(tmp_path))


@pytest.mark.parametrize("log", ["a/.hoodie/x", "a/metadata/v1.metadata.json", "a/_delta_log/0"])
def test_a_folder_with_a_table_of_others_in_it_is_refused(tmp_path: Path, log: str) -> None:
    (tmp_path / log).parent.mkdir(parents=True)
    (tmp_path / log).touch()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a/data.parquet")
    with pytest.raises(UsageError, match="tables=\\['a'\\]"):
        plan_adoption(LocalStore(tmp_path), ["id"])


def test_no_table_is_made_where_readers_of_its_log_would_not_find_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rename the folder"):
        Table.create(tmp_path / "a%41b/t", pa.table({"id": [1]}), key=["id"])
    with pytest.raises(UsageError, match="rename the folder"):
        require_lake(LocalStore(tmp_path / "a%41b"))
