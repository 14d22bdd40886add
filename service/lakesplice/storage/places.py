"""What an address names: the store to use, and what goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from lakesplice.splicing.output.copying import Sink
from lakesplice.storage.access import Bucket, parse
from lakesplice.storage.copying import FileSink
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.storage.object_files import ObjectSink
from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.uploads import PartsSink, PartsUpload
from lakesplice.table.ports import Store

AnyStore = LocalStore | ObjectStore


def open_store(uri: str | Path, options: Mapping[str, str] | None = None) -> AnyStore:
    """Return the store at an address: a path, `file:`, or `s3:`, `gs:` or `az:` with a bucket.

    Reads nothing. `UsageError` for other addresses.
    """
    place = parse(uri)
    if isinstance(place, Path):
        return LocalStore(place.expanduser())
    url, prefix = place
    return ObjectStore(Bucket.of(url, options), prefix)


def is_there(store: AnyStore) -> bool:
    """Whether the root of a store is there: a folder, or a prefix with something below it."""
    return store.root.is_dir() if isinstance(store, LocalStore) else bool(store.folders())


def drop_temporaries(store: Store, before_ms: int) -> int:
    """Delete what dead processes left half written before a moment; how many files. Blocks.

    0 for a bucket, where nobody sees a file before it is whole, and the store's own rules end
    uploads that were given up. `StorageError` as `LocalStore.drop_temporaries`.
    """
    return store.drop_temporaries(before_ms) if isinstance(store, LocalStore) else 0


def parent_store(store: AnyStore, levels: int) -> tuple[AnyStore, str] | None:
    """Return the store so many folders above, and the path there from it; None if there isn't."""
    if isinstance(store, LocalStore):
        if len(store.root.parts) <= levels:
            return None
        above = store.root.parents[levels - 1]
        return LocalStore(above), store.root.relative_to(above).as_posix()
    parts = store.prefix.split("/") if store.prefix else []
    if len(parts) < levels:
        return None
    return ObjectStore(store.bucket, "/".join(parts[:-levels])), "/".join(parts[-levels:])


def open_sink(stream: pa.NativeFile) -> Sink:
    """Return the sink on what a store's writer gave that copies with as few bytes as it can."""
    if isinstance(stream, ObjectSink) and isinstance(stream.upload, PartsUpload):
        return PartsSink(stream, stream.upload)
    return FileSink(stream)


def log_keeper(store: Store) -> DeltaLogKeeper:
    """Return the keeper of the log of the table whose root is the store's, one of this module."""
    if isinstance(store, LocalStore):
        return DeltaLogKeeper(store.root)
    assert isinstance(store, ObjectStore)
    options = {f"aws_{name}": value for name, value in store.bucket.options}
    return DeltaLogKeeper(store.address, options)
