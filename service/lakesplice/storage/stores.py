"""The store at an address, and its options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from lakesplice.errors import StorageError, UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.splicing.output.copying import Sink
from lakesplice.storage.bucket_access import Bucket, parse
from lakesplice.storage.copying import FileSink
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.storage.object_files import ObjectSink
from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.uploads import PartsSink, PartsUpload
from lakesplice.table.files.inner_tables import ICEBERG, LOGS, require_no_outer_table
from lakesplice.table.protocol.ports import Store

_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")

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
    """Return whether the root of a store exists: a folder, or a prefix with something below it."""
    return store.root.is_dir() if isinstance(store, LocalStore) else bool(store.folders())


def drop_temporaries(store: Store, before_ms: EpochMs) -> int:
    """Delete files that dead processes left half written before a moment; return how many. Blocks.

    0 for a bucket: there no reader sees a file before it is whole, and the store's own rules end
    abandoned uploads. Raises `StorageError` as `LocalStore.drop_temporaries` does.
    """
    return store.drop_temporaries(before_ms) if isinstance(store, LocalStore) else 0


def parent_store(store: AnyStore, levels: int) -> tuple[AnyStore, str] | None:
    """Return the store `levels` folders above, and the path from there; None if there is none."""
    if isinstance(store, LocalStore):
        if len(store.root.parts) <= levels:
            return None
        above = store.root.parents[levels - 1]
        return LocalStore(above), store.root.relative_to(above).as_posix()
    parts = store.prefix.split("/") if store.prefix else []
    if len(parts) < levels:
        return None
    return ObjectStore(store.bucket, "/".join(parts[:-levels])), "/".join(parts[-levels:])


def require_usable_address(store: AnyStore) -> None:
    """Check that tables can be made at a store's root or below; `UsageError` otherwise.

    No folder above it may be a table, and its path may not contain `%41` or the like: libraries
    that read Delta's log decode it to `A`, so they would find no table, and no checkpoint could be
    written. Blocks on a bucket, which is asked about each folder above. Folders that may not be
    read are skipped, since credentials often allow only a prefix.
    """
    if isinstance(store, ObjectStore):
        _require_no_table_above(store)
        return
    if _ESCAPED.search(str(store.root)):
        raise UsageError(
            "Delta readers decode % and two digits in a path as another character; rename the"
            " folder",
            path=str(store.root),
        )
    for above in store.root.parents:
        # By name, since not every folder may be listed; `Path.is_dir` raises where it may not look.
        there = [name for name in LOGS if os.path.isdir(above / name)]  # noqa: PTH112
        metadata: list[str] = []
        with suppress(OSError):
            metadata = os.listdir(above / ICEBERG)  # noqa: PTH208
        require_no_outer_table(there, str(above), metadata)


def _require_no_table_above(store: ObjectStore) -> None:
    parts = store.prefix.split("/") if store.prefix else []
    for depth in range(len(parts)):
        above = ObjectStore(store.bucket, "/".join(parts[:depth]))
        with suppress(StorageError):
            there = above.folders()
            metadata = above.list(f"{ICEBERG}/") if ICEBERG in there else ()
            require_no_outer_table(there, above.address, metadata)


def open_sink(stream: pa.NativeFile) -> Sink:
    """Return the sink on a file that a store's writer opened, which copies with as few bytes as
    possible.
    """
    if isinstance(stream, ObjectSink) and isinstance(stream.upload, PartsUpload):
        return PartsSink(stream, stream.upload)
    return FileSink(stream)


def log_keeper(store: Store) -> DeltaLogKeeper:
    """Return the keeper of the log of the table at the store's root."""
    if isinstance(store, LocalStore):
        return DeltaLogKeeper(store.root)
    assert isinstance(store, ObjectStore)
    options = {f"aws_{name}": value for name, value in store.bucket.options}
    return DeltaLogKeeper(store.address, options, store)
