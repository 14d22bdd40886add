"""Damage, a limit of pyarrow's and a failing disk give three different errors."""

from __future__ import annotations

import errno
import io

import pyarrow as pa
import pytest

from lakesplice.errors import CorruptFileError, LakespliceError, StorageError, UnsupportedError
from lakesplice.splicing.splice import splice
from lakesplice.splicing.structures.decoding import decoding
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.whole_rewrite import rewrite_whole
from tests.support.in_memory import edits_of, look, made
from tests.support.parquet_parts import PLACE, parquet, some_table


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (pa.ArrowNotImplementedError("an encoding"), UnsupportedError),
        (NotImplementedError("a type"), UnsupportedError),
        (pa.ArrowCapacityError("too many"), UnsupportedError),
        (pa.ArrowInvalid("offset overflow while concatenating arrays"), UnsupportedError),
        (pa.ArrowInvalid("Take operation overflowed binary array capacity"), UnsupportedError),
        (OSError(errno.EIO, "Input/output error"), StorageError),
        (OSError("Corrupt snappy compressed data."), CorruptFileError),
        (pa.ArrowInvalid("Unexpected end of stream"), CorruptFileError),
        (pa.ArrowMemoryError("malloc of size 1 << 60 failed"), CorruptFileError),
    ],
)
def test_errors_of_pyarrow_are_distinguished(cause: Exception, kind: type[LakespliceError]) -> None:
    with pytest.raises(LakespliceError) as raised, decoding(PLACE):
        raise cause
    assert type(raised.value) is kind
    assert raised.value.facts["path"] == PLACE.path
    assert ("reason" in raised.value.facts) is (kind is UnsupportedError)
    assert raised.value.__cause__ is cause


def test_our_own_errors_pass_as_they_are() -> None:
    with pytest.raises(CorruptFileError, match="as it was"), decoding(PLACE):
        raise PLACE.corrupt("as it was")


class FailingDisk(io.BytesIO):
    """A file of which some bytes can't be read."""

    def __init__(self, data: bytes, bad: range) -> None:
        super().__init__(data)
        self._bad = bad

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        data = super().read(size)
        if start < self._bad.stop and start + len(data) > self._bad.start:
            raise OSError(errno.EIO, "Input/output error")
        return data


@pytest.mark.parametrize("part", ["footer", "index", "pages"])
@pytest.mark.parametrize("page_index", [True, False])
def test_a_failing_disk_is_not_reported_as_damage(part: str, page_index: bool) -> None:
    data = parquet(some_table(2000), write_page_index=page_index)
    file = look(data)
    chunk = file.chunk(0, 0)
    index = chunk.offset_index
    at = {
        "footer": file.footer.start + 5,
        "index": index.offset if index else file.footer.start + 5,
        "pages": chunk.end - 5,
    }[part]
    edits = edits_of({"id": ([5], pa.array([-1]))})

    def disk() -> pa.NativeFile:
        return pa.PythonFile(FailingDisk(data, range(at, at + 1)), mode="r")

    with pytest.raises(StorageError) as raised:
        made(lambda sink: splice(disk(), "a.parquet", edits, sink))
    assert raised.value.facts["path"] == "a.parquet"
    if part != "index":
        with pytest.raises(StorageError):
            rewrite_whole(disk(), "a.parquet", edits, pa.BufferOutputStream())


def test_a_whole_disk_is_read() -> None:
    data = parquet(some_table())
    source = SourceFile(pa.PythonFile(FailingDisk(data, range(0)), mode="r"), "a.parquet")
    assert source.footer.num_rows == 2500
