"""The newest versions of a table can't be read, since another program committed them although the
protocol forbids it, or their manifests are damaged; they are undone, and the table goes on.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError, MissingFileError, TableNotFoundError, UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import IS_DELETED
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.orphans import find_orphans
from lakesplice.table.upkeep.unreadable_versions import UndoneVersions, undo_unreadable
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support import by_hand
from tests.support.by_hand import COLUMNS, created, require_rows, require_sound_index, row, rows_of
from tests.support.drawing import examples
from tests.support.simulated import memory_folder

LATER = EpochMs(1 << 42)
Action = dict[str, Any]
Log = list[Action]


def actions_of(folder: Path) -> Log:
    files = sorted((folder / "_delta_log").glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def newest(log: Log, kind: str) -> Action:
    found: Action = [action[kind] for action in log if kind in action][-1]
    return found


def live(log: Log) -> dict[str, Action]:
    files: dict[str, Action] = {}
    for action in log:
        if "add" in action:
            files[action["add"]["path"]] = action["add"]
        if "remove" in action:
            files.pop(action["remove"]["path"], None)
    return files


def _without_files(log: Log) -> Log:
    return [
        {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}} for path in live(log)
    ]


def _with_a_file(log: Log) -> Log:
    add = {
        "path": f"theirs{len(log)}.parquet",
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    return [{"add": {**add, "partitionValues": {}}}]


def _without_bounds(log: Log) -> Log:
    return [
        {"add": {**add, "stats": '{"numRecords":9}', "dataChange": False}}
        for add in live(log).values()
    ]


def _other_metadata(log: Log) -> Log:
    known = newest(log, "metaData")
    fields = json.loads(known["schemaString"])
    fields["fields"].append({"name": "new", "type": "long", "nullable": True, "metadata": {}})
    properties = {**known["configuration"], "delta.appendOnly": "true"}
    changed = {**known, "schemaString": json.dumps(fields), "configuration": properties}
    return [{"metaData": changed}]


def _other_protocol(log: Log) -> Log:
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}]


def _domain_copied(log: Log) -> Log:
    return [{"domainMetadata": newest(log, "domainMetadata")}]


def _domain_removed(log: Log) -> Log:
    known = newest(log, "domainMetadata")
    return [{"domainMetadata": {**known, "removed": True}}]


def _timed(log: Log) -> Log:
    known = newest(log, "commitInfo")
    return [{"commitInfo": {"timestamp": known["timestamp"] + 1, "operation": "WRITE"}}]


Kinds = list[Callable[[Log], Log]]
KINDS: Kinds = [
    _without_files,
    _with_a_file,
    _without_bounds,
    _other_metadata,
    _other_protocol,
    _domain_copied,
    _domain_removed,
    _timed,
]
COMMITS = st.lists(st.lists(st.sampled_from(KINDS), max_size=3, unique=True), max_size=3)
DAMAGES = st.sampled_from(["", "deleted", "overwritten"])


def commit(folder: Path, kinds: Kinds) -> None:
    log = actions_of(folder)
    made = [action for kind in kinds for action in kind(log)]
    # Not even such a program adds and removes a file in one commit.
    gone = {action["remove"]["path"] for action in made if "remove" in action}
    made = [one for one in made if one.get("add", {}).get("path") not in gone]
    made = made or [{"txn": {"appId": "a"}}]
    version = len(list((folder / "_delta_log").glob("*.json")))
    text = "\n".join(map(json.dumps, made))
    (folder / f"_delta_log/{version:020d}.json").write_text(f"{text}\n")


def require_restored(folder: Path, table: HandFedTable, before: Log) -> None:
    """Delta's readers see the files, the description and the rows that were there before."""
    after = actions_of(folder)
    assert live(after).keys() == live(before).keys()
    assert [add.get("stats") for _, add in sorted(live(after).items())] == [
        add.get("stats") for _, add in sorted(live(before).items())
    ]
    for kind in ("metaData", "protocol"):
        assert newest(after, kind) == newest(before, kind)
    rows = DeltaTable(str(folder)).to_pyarrow_table(filters=[(IS_DELETED, "=", False)])
    assert sorted(rows["id"].to_pylist()) == sorted(rows_of(table, "read_optimised"))


def damage(folder: Path, how: str) -> None:
    """Delete the newest manifest, or write something else into it."""
    file = max((folder / "_lakesplice/manifests").iterdir())
    file.chmod(0o644)
    file.unlink() if how == "deleted" else file.write_bytes(b"{}")


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(DAMAGES, COMMITS), min_size=1, max_size=2), st.booleans(), st.booleans())
def test_versions_that_nobody_can_read_are_undone_and_the_table_goes_on(
    rounds: list[tuple[str, list[Kinds]]], waiting: bool, feed: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        folder, clock = Path(name), FixedClock()
        store = LocalStore(folder)
        table = created(store, [row(1), row(2, "b"), row(3)], change_feed=feed)
        truth = rows_of(table)
        for number, (damaged, commits) in enumerate(rounds):
            table.upsert(by_hand.given([row(2, f"b{number}")], COLUMNS.names), merge=not waiting)
            truth[2] = row(2, f"b{number}")
            ours, before = table.version, actions_of(folder)
            if damaged:
                table.upsert(by_hand.given([row(2, "lost"), row(5)], COLUMNS.names))
                damage(folder, damaged)
            for kinds in commits:
                commit(folder, kinds)
            newest = ours + bool(damaged) + len(commits)
            if newest > ours:
                with pytest.raises((CorruptFileError, TableNotFoundError)):
                    open_snapshot(store)
                with pytest.raises(UsageError, match="choose an older one"):
                    undo_unreadable(store, ours + 1, clock=clock, entropy=SeededEntropy(5))
            theirs, entries = live(actions_of(folder)), len(actions_of(folder))
            undone = undo_unreadable(store, ours, clock=clock, entropy=SeededEntropy(number))
            done = UndoneVersions(newest + 1, ours, newest - ours)
            assert undone == (done if newest > ours else None)
            table = by_hand.opened(store, 20 + number)
            require_rows(table, truth)
            require_restored(folder, table, before)
            # Only a file that was gone brings rows back.
            for action in actions_of(folder)[entries:]:
                if "add" in action:
                    assert action["add"]["dataChange"] == (action["add"]["path"] not in theirs)
        table.upsert(by_hand.given([row(3, "c"), row(4)], COLUMNS.names))
        table.compact()
        require_rows(table, {**truth, 3: row(3, "c"), 4: row(4)})
        require_sound_index(store, table)
        # Versions of ours and of others expire alike, and what only they name is gone.
        Expiry(store, table._writer.commit).run(table.snapshot, LATER)
        assert table._writer.newest().retention.retained_from == table.version - 1
        (folder / "theirs.parquet").write_bytes(b"theirs")
        assert "theirs.parquet" in find_orphans(store, open_snapshot(store), LATER)
        require_rows(by_hand.opened(store, 40), {**truth, 3: row(3, "c"), 4: row(4)})


def test_a_table_whose_files_another_program_deleted_stays_as_it_is(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [row(1)])
    for path in live(actions_of(tmp_path)):
        (tmp_path / path).unlink()
    commit(tmp_path, [_without_files])
    with pytest.raises(MissingFileError, match="restore them from a backup"):
        undo_unreadable(store, table.version, clock=FixedClock(), entropy=SeededEntropy(1))
    assert len(list((tmp_path / "_delta_log").glob("*.json"))) == 2
