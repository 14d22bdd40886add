"""The file of a table's erased keys: written whole for each erasure, and read where a change may be
of an erased row.
"""

from __future__ import annotations

import pyarrow as pa

from lakesplice.formats.checksum import verify
from lakesplice.formats.manifests.erased_keys import decode_erased_keys, encode_erased_keys
from lakesplice.model.change import at_or_below
from lakesplice.model.manifest import ErasedRef
from lakesplice.model.progress.erased_keys import ErasedKeys
from lakesplice.table.files.base_files import put_file
from lakesplice.table.protocol.layout import erased_path
from lakesplice.table.protocol.ports import Entropy, Store


def read_erased(store: Store, ref: ErasedRef) -> ErasedKeys:
    """Return a table's erased keys; `CorruptFileError` if the file isn't what was written."""
    data = store.read(ref.file.path)
    verify(data, ref.file)
    return decode_erased_keys(data, ref.file.path)


def write_erased(store: Store, erased: ErasedKeys, entropy: Entropy) -> ErasedRef:
    """Write erased keys to a new file, which nothing names yet.

    It has all that were ever erased: nobody may forget one while a topic can be read again.
    """
    ref = put_file(store, erased_path(entropy), encode_erased_keys(erased))
    return ErasedRef(ref, len(erased.positions), erased.highest)


def erased_for(store: Store, ref: ErasedRef | None, changes: pa.Table) -> ErasedKeys | None:
    """Return the erased keys if one of the changes may be of one of them, else None: changes that
    are new to the table are above all of their positions, so the file is seldom read.
    """
    if ref is None or not at_or_below(changes, ref.highest).any():
        return None
    return read_erased(store, ref)
