"""New pages are held in memory up to a limit, and beyond it in a temporary file."""

from __future__ import annotations

import pyarrow as pa

from lakesplice.splicing.output.images import CopiedRange
from lakesplice.splicing.pages.memory import PageBuffer
from lakesplice.storage.copying import ScratchFile

PAGE = pa.py_buffer(b"4444")


def test_pages_are_put_aside_once_all_of_them_together_have_more_bytes_than_may_be_held() -> None:
    opened: list[ScratchFile] = []

    def open_scratch() -> ScratchFile:
        opened.append(ScratchFile())
        return opened[-1]

    buffer = PageBuffer(8, open_scratch)
    held = [buffer.put(PAGE), buffer.put(PAGE)]
    assert not opened
    aside = [buffer.put(PAGE), buffer.put(pa.py_buffer(b"1"))]
    assert len(opened) == 1
    assert [isinstance(one, CopiedRange) for one in held + aside] == [False, False, True, True]
    found = [
        one.source.read(one.offset, one.length).to_pybytes()
        for one in aside
        if isinstance(one, CopiedRange)
    ]
    assert found == [b"4444", b"1"]


def test_without_a_place_for_them_all_pages_are_held() -> None:
    buffer = PageBuffer(1, None)
    assert not any(isinstance(buffer.put(PAGE), CopiedRange) for _ in range(3))
