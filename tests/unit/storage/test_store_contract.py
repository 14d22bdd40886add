"""What every `Store` promises, on each of its implementations."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import LakespliceError, MissingFileError, StorageError, UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.faulty_store import FaultyStore

STORES: dict[str, Callable[[Path], Store]] = {
    "local": lambda root: LocalStore(root / "lake"),
    "local within": lambda root: LocalStore(root).within("a/b"),
    "faulty without faults": lambda root: FaultyStore(LocalStore(root / "lake")),
    "faulty within": lambda root: FaultyStore(LocalStore(root)).within("a/b"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return STORES[request.param](tmp_path)


def test_a_file_put_is_read_back(store: Store) -> None:
    assert store.put_new("x/y/file.json", b"data")
    assert store.read("x/y/file.json") == b"data"
    assert store.open("x/y/file.json").read() == b"data"
    assert store.size("x/y/file.json") == 4


def test_a_second_put_is_refused_and_changes_nothing(store: Store) -> None:
    assert store.put_new("file", b"first")
    assert not store.put_new("file", b"second")
    assert store.read("file") == b"first"


def test_one_of_many_simultaneous_puts_wins_completely(store: Store) -> None:
    contents = [bytes([n]) * 10_000 for n in range(8)]
    start = threading.Barrier(len(contents))
    won: list[bytes] = []

    def put(data: bytes) -> None:
        start.wait()
        if store.put_new("file", data):
            won.append(data)

    threads = [threading.Thread(target=put, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.read("file")] == won


def test_a_writer_takes_raw_bytes_and_parquet(store: Store) -> None:
    with store.writer("raw") as sink:
        sink.write(b"ab")
        sink.write(b"cd")
    table = pa.table({"a": [1, 2, 3]})
    with store.writer("x.parquet") as sink:
        pq.write_table(table, sink)
    assert store.read("raw") == b"abcd"
    assert pq.read_table(store.open("x.parquet")) == table


def test_a_writer_left_by_an_exception_leaves_nothing(store: Store) -> None:
    def write_half() -> None:
        with store.writer("file") as sink:
            sink.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert store.size("file") is None
    assert list(store.list("")) == []


def test_a_writer_refuses_an_existing_name_and_leaves_it_alone(store: Store) -> None:
    store.put_new("file", b"first")
    with pytest.raises(StorageError), store.writer("file") as sink:
        sink.write(b"second")
    assert store.read("file") == b"first"


@pytest.mark.parametrize("call", ["read", "open"])
def test_a_file_that_is_not_there_is_a_missing_file(store: Store, call: str) -> None:
    with pytest.raises(MissingFileError) as caught:
        getattr(store, call)("no/file")
    assert caught.value.facts["path"] == "no/file"


def test_size_of_a_file_that_is_not_there_is_none(store: Store) -> None:
    store.put_new("file", b"")
    assert store.size("no/file") is None
    assert store.size("file/below") is None
    assert store.size("file") == 0


def test_an_empty_file_opens(store: Store) -> None:
    store.put_new("file", b"")
    assert store.open("file").read() == b""


def test_list_yields_the_paths_that_start_with_the_prefix_in_order(store: Store) -> None:
    for path in ("b/2", "b/10", "b/c/1", "ba", "a"):
        store.put_new(path, b"")
    assert list(store.list("")) == ["a", "b/10", "b/2", "b/c/1", "ba"]
    assert list(store.list("b")) == ["b/10", "b/2", "b/c/1", "ba"]
    assert list(store.list("b/")) == ["b/10", "b/2", "b/c/1"]
    assert list(store.list("b/1")) == ["b/10"]
    assert list(store.list("no/such")) == []


def test_folders_are_those_with_files_below(store: Store) -> None:
    for path in ("b/c/1", "b/d/e/2", "a/3", "4"):
        store.put_new(path, b"")
    # A store may keep something of its own in `_lakesplice`.
    assert [name for name in store.folders() if name != "_lakesplice"] == ["a", "b"]
    assert list(store.folders("b")) == ["c", "d"]
    assert list(store.folders("b/c")) == []
    assert list(store.folders("no/such")) == []


def test_a_file_knows_when_it_was_written(store: Store) -> None:
    assert store.modified_ms("x/file") is None
    store.put_new("x/file", b"data")
    written = store.modified_ms("x/file")
    assert written is not None
    store.put_new("x/later", b"data")
    later = store.modified_ms("x/later")
    assert later is not None
    assert 0 <= later - written < 60_000


def test_a_file_is_deleted_once_and_again_without_error(store: Store) -> None:
    store.put_new("x/file", b"data")
    store.delete("x/file")
    store.delete("x/file")
    store.delete("no/such/folder")
    assert store.size("x/file") is None
    assert store.put_new("x/file", b"new")


def test_a_store_within_shares_its_files(store: Store) -> None:
    inner = store.within("x").within("y")
    assert inner.put_new("file", b"data")
    assert store.read("x/y/file") == b"data"
    assert not store.put_new("x/y/file", b"other")
    assert list(inner.list("")) == ["file"]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../outside", "a/../../b", "a//b", "", ".", "a/.", "a\0b"]
)
@pytest.mark.parametrize("call", ["read", "open", "size", "delete", "put_new", "writer", "within"])
def test_a_path_out_of_the_store_is_refused(store: Store, call: str, path: str) -> None:
    arguments: tuple[object, ...] = (path, b"") if call == "put_new" else (path,)
    with pytest.raises(UsageError):
        _run(getattr(store, call)(*arguments))


def _run(result: object) -> None:
    if isinstance(result, AbstractContextManager):
        with result:
            pass


def test_a_disk_that_is_full_is_a_storage_error_naming_file_and_reason(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")

    def write() -> None:
        with LocalStore(tmp_path).writer("file"), pa.OSFile("/dev/full", "wb") as full:
            full.write(b"x")

    with pytest.raises(StorageError) as caught:
        write()
    assert caught.value.facts["path"] == "file"
    assert caught.value.facts["errno"] == 28


def test_a_folder_where_a_file_should_be_is_a_storage_error(store: Store) -> None:
    store.put_new("x/file", b"")
    for call in ("read", "open", "delete"):
        with pytest.raises(StorageError):
            getattr(store, call)("x")
    with pytest.raises(LakespliceError):
        store.put_new("x/file/below", b"")


def test_temporary_files_are_hidden_and_removed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put_new("file", b"data")
    store.put_new("file", b"data")
    assert list(store.list("")) == ["file"]
    assert list((tmp_path / "_lakesplice" / "tmp").iterdir()) == []


def test_everything_is_synced_before_a_put_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    store = LocalStore(tmp_path / "lake").within("t")
    store.put_new("log/1", b"data")
    folders, temporary = synced[:-2], synced[-2]
    assert folders == ["lake/t", "lake", "."]
    assert temporary.startswith("lake/_lakesplice/tmp/")
    assert synced[-1] == "lake/t/log"
    synced.clear()
    store.put_new("log/1", b"data")
    assert synced[1:] == ["lake/t/log/1", "lake/t/log"]
    synced.clear()
    with store.writer("base/x") as sink:
        sink.write(b"x")
    assert synced == ["lake/t", "lake/t/base/x", "lake/t/base"]
    synced.clear()
    (tmp_path / "lake" / "t").rename(tmp_path / "lake" / "before")
    store.put_new("base/y", b"data")
    assert [*synced[:2], *synced[3:]] == ["lake/t", "lake", "lake/t/base"]
