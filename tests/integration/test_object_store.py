"""A real S3 server behind a proxy that loses, delays and refuses requests: no data is lost or
doubled.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import MissingFileError, StorageError
from lakesplice.storage.bucket_access import Bucket
from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.stores import open_sink
from lakesplice.storage.uploads import PART_BYTES_MIN
from lakesplice.testing.s3_proxy import Fault, ProxiedRequest, S3Proxy
from lakesplice.testing.s3_server import S3Server, client, options

PROCESSES, THREADS, NAMES = 2, 8, 25
MIB = 1 << 20
# Three parts; a source with enough room for copies from several places.
LARGE, SOURCE = 24 * MIB, 24 * MIB


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.port) as proxy:
        yield proxy


@pytest.fixture
def make(s3_server: S3Server, proxy: S3Proxy) -> Callable[..., ObjectStore]:
    """Makes stores of one new bucket behind the proxy."""
    name = s3_server.make_bucket()

    def made(**patience: float) -> ObjectStore:
        return ObjectStore(Bucket.of(f"s3://{name}", options(proxy.endpoint), **patience), "lake")

    return made


@pytest.fixture
def store(make: Callable[..., ObjectStore]) -> ObjectStore:
    return make(timeout=30.0, patience=20.0)


def some_bytes(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def putting(request: ProxiedRequest) -> bool:
    return request.method == "PUT"


def race(pickled: bytes, process: int) -> list[tuple[int, bytes]]:
    """What this process's threads won, by the number of the name."""
    store: ObjectStore = pickle.loads(pickled)

    def put(job: tuple[int, int]) -> tuple[int, bytes] | None:
        name, thread = job
        data = f"{process}-{thread}".encode()
        return (name, data) if store.put_new(f"log/{name:020d}.json", data) else None

    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [(name, thread) for name in range(NAMES) for thread in range(THREADS)]
        return [won for won in pool.map(put, jobs) if won is not None]


def test_each_name_is_created_by_exactly_one_of_many_writers_in_many_processes(
    store: ObjectStore,
) -> None:
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        arguments = [(pickle.dumps(store), process) for process in range(PROCESSES)]
        won = [one for some in pool.starmap(race, arguments) for one in some]
    assert sorted(name for name, _ in won) == list(range(NAMES))
    for name, data in won:
        assert store.read(f"log/{name:020d}.json") == data


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("times", [1, 3])
def test_a_put_is_ours_whatever_happens_to_its_requests(
    make: Callable[..., ObjectStore], proxy: S3Proxy, fault: Fault, times: int
) -> None:
    store = make(timeout=1.0, patience=30.0) if fault is Fault.LATE else make()
    proxy.fail(*[fault] * times, when=putting)
    assert store.put_new("log/1.json", b"ours")
    assert store.read("log/1.json") == b"ours"


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.ANSWER_LOST, Fault.THROTTLED])
def test_a_put_of_a_name_that_is_taken_is_refused_whatever_happens(
    store: ObjectStore, proxy: S3Proxy, fault: Fault
) -> None:
    assert store.put_new("log/1.json", b"theirs")
    proxy.fail(fault, fault, when=putting)
    assert not store.put_new("log/1.json", b"theirs")
    assert not store.put_new("log/1.json", b"ours")
    assert store.read("log/1.json") == b"theirs"


def test_a_store_that_is_away_is_an_error_that_says_so(
    make: Callable[..., ObjectStore], proxy: S3Proxy
) -> None:
    store = make(timeout=5.0, patience=0.1)
    proxy.fault = lambda _: Fault.LOST
    for call in (
        lambda: store.put_new("file", b""),
        lambda: store.read("file"),
        lambda: store.open("file"),
        lambda: store.size("file"),
        lambda: store.list("file"),
        lambda: store.delete("file"),
        lambda: store.folders("file"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert not isinstance(caught.value, MissingFileError)
        assert caught.value.facts["path"] == "file"


def test_wrong_credentials_are_an_error_that_says_so(s3_server: S3Server) -> None:
    wrong = {**options(s3_server.endpoint), "aws_secret_access_key": "wrong"}
    store = ObjectStore(Bucket.of(f"s3://{s3_server.make_bucket()}", wrong, patience=1.0))
    with pytest.raises(StorageError, match="credentials"):
        store.put_new("file", b"")
    assert "wrong" not in repr(store)


def test_a_large_file_that_the_store_refuses_says_why(store: ObjectStore) -> None:
    """A file system keeps this server's objects: none lies below another."""
    assert store.put_new("file", b"")
    with (
        pytest.raises(StorageError, match="ObjectParentIsFile"),
        store.writer("file/below") as sink,
    ):
        sink.write(some_bytes(17 * MIB))


@pytest.mark.parametrize("size", [0, 1, PART_BYTES_MIN, 16 * MIB - 1, 16 * MIB, LARGE + 1])
def test_a_writer_of_any_size_writes_what_it_was_given(store: ObjectStore, size: int) -> None:
    data = some_bytes(size)
    with store.writer("file") as sink:
        for at in range(0, size, 3 * MIB):
            sink.write(data[at : at + 3 * MIB])
    assert store.read("file") == data
    assert store.size("file") == size


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.ANSWER_LOST, Fault.THROTTLED])
@pytest.mark.parametrize("request_of", ["parts", "the end"])
def test_a_large_file_is_whole_whatever_happens_to_its_requests(
    store: ObjectStore, proxy: S3Proxy, fault: Fault, request_of: str
) -> None:
    data = some_bytes(LARGE)

    def chosen(request: ProxiedRequest) -> bool:
        last = request.method == "POST" and "uploadId" in request.query
        return last if request_of == "the end" else putting(request)

    proxy.fail(fault, fault, when=chosen)
    with store.writer("file") as sink:
        sink.write(data)
    assert store.read("file") == data


def test_a_large_file_of_a_name_that_is_taken_is_refused(store: ObjectStore) -> None:
    store.put_new("file", b"theirs")
    with pytest.raises(StorageError), store.writer("file") as sink:
        sink.write(some_bytes(LARGE))
    assert store.read("file") == b"theirs"


def test_a_large_file_that_is_given_up_leaves_nothing(
    store: ObjectStore, s3_server: S3Server
) -> None:
    def give_up() -> None:
        with store.writer("file") as sink:
            sink.write(some_bytes(LARGE))
            raise KeyError

    with pytest.raises(KeyError):
        give_up()
    assert store.size("file") is None
    uploads = client(s3_server.endpoint).list_multipart_uploads(Bucket=store.bucket.name)
    assert not uploads.get("Uploads")


def test_ranges_are_read_by_few_requests(store: ObjectStore, proxy: S3Proxy) -> None:
    data = some_bytes(8 * MIB)
    with store.writer("file") as sink:
        sink.write(data)
    proxy.reset()
    file = store.open("file", tail_bytes=MIB)
    assert file.size() == len(data)
    assert file.read_at(MIB, 7 * MIB) == data[7 * MIB :]
    assert len(proxy.seen()) == 1
    near = [(at, 1000) for at in range(0, MIB, 10_000)]
    found = file.read_ranges(*zip(*near, strict=True))
    assert [bytes(one) for one in found] == [data[at : at + size] for at, size in near]
    assert len(proxy.seen()) == 2
    file.seek(5)
    assert file.read(7) == data[5:12]
    assert file.tell() == 12


def copied(store: ObjectStore, *ranges: tuple[int, int] | bytes) -> None:
    """Write `target` of ranges of `source` and of bytes."""
    with store.open("source") as source, store.writer("target") as stream:
        sink = open_sink(stream)
        assert sink.copies_inside(source)
        for one in ranges:
            if isinstance(one, bytes):
                sink.write(one)
            else:
                sink.copy(source, *one)


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, SOURCE)],
        [b"PAR1", (4, SOURCE - 4), b"footer"],
        [(0, 9 * MIB), b"new" * 1000, (10 * MIB, 14 * MIB)],
        [(5, 100), b"x", (7, 200), b"y" * PART_BYTES_MIN, (0, PART_BYTES_MIN)],
        [(0, 6 * MIB), (15 * MIB, 6 * MIB), b"z" * 6 * MIB, (1, 6 * MIB)],
        [b"z" * (PART_BYTES_MIN - 1), (0, PART_BYTES_MIN), (0, 2)],
        [(0, 1)],
    ],
)
def test_copies_and_bytes_in_any_order_make_the_file(
    store: ObjectStore, ranges: list[tuple[int, int] | bytes]
) -> None:
    data = some_bytes(SOURCE)
    with store.writer("source") as sink:
        sink.write(data)
    copied(store, *ranges)
    meant = b"".join(
        one if isinstance(one, bytes) else data[one[0] : one[0] + one[1]] for one in ranges
    )
    assert store.read("target") == meant


def test_long_copies_stay_inside_the_store(store: ObjectStore, proxy: S3Proxy) -> None:
    with store.writer("source") as sink:
        sink.write(some_bytes(SOURCE))
    proxy.reset()
    copied(store, b"PAR1", (4, SOURCE - 4), b"footer")
    moved = sum(request.sent + request.received for request in proxy.seen())
    # Four bytes at its start cost the rest of their part, twice.
    assert 2 * PART_BYTES_MIN - 200_000 < moved < 2 * PART_BYTES_MIN + 200_000
    assert any(request.copied for request in proxy.seen())


def test_a_beginning_that_the_source_has_too_is_copied_with_what_follows(
    store: ObjectStore, proxy: S3Proxy
) -> None:
    data = b"PAR1" + some_bytes(SOURCE)
    with store.writer("source") as sink:
        sink.write(data)
    proxy.reset()
    copied(store, b"PAR1", (4, SOURCE), b"footer")
    assert sum(request.sent + request.received for request in proxy.seen()) < 200_000
    assert store.read("target") == data + b"footer"


def test_a_file_that_was_replaced_is_not_copied(store: ObjectStore) -> None:
    with store.writer("source") as sink:
        sink.write(some_bytes(8 * MIB))
    source = store.open("source")
    store.delete("source")
    with store.writer("source") as sink:
        sink.write(some_bytes(8 * MIB, seed=2))
    with pytest.raises(StorageError), store.writer("target") as stream:
        open_sink(stream).copy(source, 0, 8 * MIB)
    assert store.size("target") is None


def test_a_table_as_pyarrow_writes_it_comes_back(store: ObjectStore) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"n": np.arange(2_000_000), "x": np.random.default_rng(1).random(2_000_000)})
    with store.writer("x.parquet") as sink:
        pq.write_table(table, sink)
    assert pq.read_table(store.open("x.parquet")) == table
