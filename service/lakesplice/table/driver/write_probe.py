"""Whether a table can be written to again, asked without leaving a file."""

from __future__ import annotations

from lakesplice.table.protocol.layout import probe_path
from lakesplice.table.protocol.ports import Entropy, Store


def probe_log(store: Store, entropy: Entropy) -> None:
    """Write a file where the table's commits are, and delete it; `StorageError` if that fails.

    Blocks. Readers of the log skip a name that begins with an underscore, as ours does.
    """
    path = probe_path(entropy)
    store.put_new(path, b"")
    store.delete(path)
