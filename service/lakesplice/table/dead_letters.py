"""Writing and reading a table's dead letters."""

from __future__ import annotations

import pyarrow as pa

from lakesplice.formats.checksum import checksum, verify
from lakesplice.formats.dead_letters import LETTER_SCHEMA, decode_dead_letters, encode_dead_letters
from lakesplice.model.manifest import DeadLetterRef, FileRef
from lakesplice.table import layout
from lakesplice.table.ports import Entropy, Store

__all__ = ["LETTER_SCHEMA", "read_dead_letters", "write_dead_letters"]


def write_dead_letters(store: Store, letters: pa.Table, entropy: Entropy) -> DeadLetterRef:
    """Write the letters, in LETTER_SCHEMA, to a file of their own; durable when this returns."""
    path = layout.dead_letter_path(entropy)
    data = encode_dead_letters(letters)
    with store.writer(path) as sink:
        sink.write(data)
    return DeadLetterRef(FileRef(path, len(data), checksum(data)), letters.num_rows)


def read_dead_letters(store: Store, ref: DeadLetterRef) -> pa.Table:
    """Return the letters of one file, its checksum compared; `CorruptFileError` if damaged."""
    data = store.read(ref.file.path)
    verify(data, ref.file)
    return decode_dead_letters(data, path=ref.file.path)
