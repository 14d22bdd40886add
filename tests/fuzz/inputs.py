"""What every target of the fuzzer needs: files made from inputs, and the list of expected
errors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Set

from lakesplice.errors import CorruptFileError, UnsupportedError, UsageError
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.footer import MAGIC

PLACE = FilePart("fuzzed.parquet", "anywhere")
_NAMED: Set[str] = {"path", "place"}


def refused_by_name(read: Callable[[], object], named: Set[str] = _NAMED) -> None:
    """Let `read` end well or with an error that names what is wrong with what."""
    try:
        read()
    except (CorruptFileError, UnsupportedError, UsageError) as error:
        facts = error.facts.keys()
    else:
        return
    assert facts >= named, facts


def as_file(data: bytes) -> bytes:
    """A file of an input: its footer is as long as the last two bytes say."""
    length = min(int.from_bytes(data[-2:], "little"), max(len(data) - 2, 0))
    return MAGIC + data[:-2] + struct.pack("<I", length) + MAGIC


def as_body(file: bytes) -> bytes | None:
    """The input that gives a file, but for its first byte; None if its footer is too long."""
    length = int.from_bytes(file[-8:-4], "little")
    if length >= 1 << 16 or file[:4] != MAGIC or file[-4:] != MAGIC:
        return None
    return file[4:-8] + length.to_bytes(2, "little")
