"""Small files that are written and read as a whole: deltas, runs of the row index, dead letters,
erased keys, row images, copies of manifests.

    ref = put_file(store, path, data)  # a commit then names `ref`
    data = read_file(store, ref)  # checked against `ref`

Base files aren't among them, since they may be larger than memory; nor are merged runs of the row
index, which `index_runs` writes block by block and maps into memory when it reads them. Nor are new
manifests: `commit` creates one only if no other writer has.

Both functions may be called by several threads at once.
"""

from __future__ import annotations

from lakesplice.formats.checksum import checksum, verify
from lakesplice.model.manifest import FileRef
from lakesplice.table.protocol.ports import Store


def put_file(store: Store, path: str, data: bytes) -> FileRef:
    """Create a file durably and return its entry for the manifest, with its size and checksum.

    Blocks. Nothing names the file yet: if no commit does, the vacuum deletes it. Each call needs a
    path of its own, which `layout` draws. `StorageError` if the file couldn't be written.
    """
    with store.writer(path) as sink:
        sink.write(data)
    return FileRef(path, len(data), checksum(data))


def read_file(store: Store, ref: FileRef) -> bytes:
    """Return what a file holds after its size and checksum were checked.

    Blocks; the result is the whole file. `MissingFileError` if it doesn't exist, `CorruptFileError`
    if it isn't what was written; `StorageError` if it couldn't be read.
    """
    data = store.read(ref.path)
    verify(data, ref)
    return data
