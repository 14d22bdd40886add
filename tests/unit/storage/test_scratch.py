"""Temporary files: they return the same bytes, have no name, and are on the disk of TMPDIR."""

from __future__ import annotations

import gc
import tempfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.errors import StorageError
from lakesplice.storage.copying import FileSink, ScratchFile


def open_files(folder: Path) -> list[str]:
    """What this process has open in the folder, names that are gone from it included.

    Files elsewhere are other tests', which the garbage collector may close at any time.
    """
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return [name for name in found if name.startswith(f"{folder}/")]


@pytest.mark.slow
def test_scratch_pages_are_copied_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scratch = ScratchFile()
    assert open_files(tmp_path)
    starts = [scratch.put(data) for data in (b"one", pa.py_buffer(b""), pa.py_buffer(b"three"))]
    assert starts == [0, 3, 3]
    assert scratch.read(3, 5).to_pybytes() == b"three"
    with pa.OSFile(str(tmp_path / "target"), "wb") as target:
        sink = FileSink(target)
        sink.write(b"<")
        sink.copy(scratch.source, 1, 7)
        assert sink.tell() == 8
    assert (tmp_path / "target").read_bytes() == b"<nethree"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    del scratch
    gc.collect()
    assert not open_files(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(StorageError, match="TMPDIR"):
        ScratchFile()
