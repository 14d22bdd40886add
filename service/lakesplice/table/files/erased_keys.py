"""The file of a table's erased keys: each erasure writes it as a whole, and it is read if a change
may concern an erased row.
"""

from __future__ import annotations

import pyarrow as pa

from lakesplice.formats.manifests.erased_keys import decode_erased_keys, encode_erased_keys
from lakesplice.model.change import at_or_below
from lakesplice.model.manifest import ErasedRef
from lakesplice.model.progress.erased_keys import ErasedKeys
from lakesplice.table.files.whole_files import put_file, read_file
from lakesplice.table.protocol.layout import erased_path
from lakesplice.table.protocol.ports import Entropy, Store


def read_erased(store: Store, ref: ErasedRef) -> ErasedKeys:
    """Return a table's erased keys, all of which are in memory then.

    Blocks. `CorruptFileError` if the file is damaged.
    """
    return decode_erased_keys(read_file(store, ref.file), ref.file.path)


def write_erased(store: Store, erased: ErasedKeys, entropy: Entropy) -> ErasedRef:
    """Write erased keys to a new file, which nothing names yet.

    It has all keys that were ever erased, since a topic may be read again at any time.
    """
    ref = put_file(store, erased_path(entropy), encode_erased_keys(erased))
    return ErasedRef(ref, len(erased.positions), erased.highest)


def erased_for(store: Store, ref: ErasedRef | None, changes: pa.Table) -> ErasedKeys | None:
    """Return the erased keys if one of the changes may concern one of them, otherwise None. New
    changes are above all positions of erased keys, so the file is seldom read.
    """
    if ref is None or not at_or_below(changes, ref.highest).any():
        return None
    return read_erased(store, ref)
