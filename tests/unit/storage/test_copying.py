from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.storage.copying import FileSink

DATA = os.urandom(3 << 20)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def _opened(source: Path, how: str) -> pa.NativeFile:
    return {
        "mapped": lambda: pa.memory_map(str(source)),
        "opened": lambda: pa.OSFile(str(source), "rb"),
        "in memory": lambda: pa.BufferReader(source.read_bytes()),
    }[how]()


@pytest.mark.parametrize("how", ["mapped", "opened", "in memory"])
def test_bytes_written_and_copied_come_in_order(source: Path, target: Path, how: str) -> None:
    with _opened(source, how) as origin, pa.OSFile(str(target), "wb") as stream:
        sink = FileSink(stream)
        sink.write(b"head")
        sink.copy(origin, 1000, 2 << 20)
        sink.write(pa.py_buffer(b"between"))
        sink.copy(origin, 0, 5)
        sink.copy(origin, 7, 0)
        assert sink.tell() == 4 + (2 << 20) + 7 + 5
    meant = b"head" + DATA[1000 : 1000 + (2 << 20)] + b"between" + DATA[:5]
    assert target.read_bytes() == meant


def test_bytes_that_the_file_had_before_are_not_counted(source: Path, target: Path) -> None:
    with pa.memory_map(str(source)) as origin, pa.OSFile(str(target), "wb") as stream:
        stream.write(b"before")
        sink = FileSink(stream)
        assert sink.tell() == 0
        sink.copy(origin, 0, 100)
        assert sink.tell() == 100
    assert target.read_bytes() == b"before" + DATA[:100]


def test_a_sink_in_memory_is_copied_to_through_a_buffer(source: Path) -> None:
    stream = pa.BufferOutputStream()
    with pa.memory_map(str(source)) as origin:
        FileSink(stream).copy(origin, 10, 100)
    assert stream.getvalue().to_pybytes() == DATA[10:110]


@pytest.fixture(params=[errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def incapable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A kernel that copies half a megabyte and then can't any more."""
    copies, real = [0], os.copy_file_range

    def copy(origin: int, sink: int, count: int, offset: int) -> int:
        copies[0] += 1
        if copies[0] > 1:
            raise OSError(request.param, os.strerror(request.param))
        return real(origin, sink, min(count, 1 << 19), offset)

    monkeypatch.setattr(os, "copy_file_range", copy)
    yield request.param
    assert copies[0] == 2


@pytest.mark.usefixtures("incapable")
def test_bytes_that_the_kernel_cannot_copy_go_through_a_buffer(source: Path, target: Path) -> None:
    with pa.memory_map(str(source)) as origin, pa.OSFile(str(target), "wb") as stream:
        sink = FileSink(stream)
        sink.write(b"head")
        sink.copy(origin, 1, 2 << 20)
        sink.write(b"tail")
    assert target.read_bytes() == b"head" + DATA[1 : 1 + (2 << 20)] + b"tail"


def test_a_failing_disk_is_no_reason_to_try_another_way(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(*_: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", copy)
    with pa.memory_map(str(source)) as origin, pa.OSFile(str(target), "wb") as stream:
        with pytest.raises(OSError, match="space") as raised:
            FileSink(stream).copy(origin, 0, 100)
        assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("how", ["mapped", "opened", "in memory"])
def test_a_source_that_ends_too_early_is_damaged(source: Path, target: Path, how: str) -> None:
    with (
        _opened(source, how) as origin,
        pa.OSFile(str(target), "wb") as stream,
        pytest.raises(CorruptFileError, match="ends before"),
    ):
        FileSink(stream).copy(origin, len(DATA) - 10, 11)
