"""A store in a bucket: S3 and servers with its interface, Google Cloud Storage, Azure Blob Storage.

    put_new   one PUT that only creates, with a token of its own in the object's metadata
    writer    an upload in parts, visible when complete; a small file is put at once
    open      the last bytes and the size by one request, then ranges

Failed requests are retried with growing pauses, for `Bucket.patience` in all. An answer may get
lost after the store acted on the request: then the next attempt finds an object, and the token
shows whether it is its own. An object is durable once the store acknowledged it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.formats.parquet import ROW_GROUP_BYTES_MAX
from lakesplice.model.moments import EpochMs
from lakesplice.storage.bucket_access import S3_SCHEMES, Bucket
from lakesplice.storage.bucket_failures import AccessRight, failing
from lakesplice.storage.object_files import TAIL_BYTES, ObjectFile, ObjectSink
from lakesplice.storage.uploads import MARK, PartsUpload, StreamUpload

_FORBIDDEN_PARTS = frozenset(("", ".", ".."))
# S3 copies no range below 5 MiB, so all of a row group of which some columns change comes through
# the process. Row groups of this size have about 4 MB compressed.
_ROW_GROUP_BYTES = 32 * 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class ObjectStore:
    """`Store` under a path of a bucket. Copies in other processes open their own connections."""

    def __init__(self, bucket: Bucket, prefix: str = "") -> None:
        self.bucket, self.prefix = bucket, prefix.strip("/")

    def __repr__(self) -> str:
        return f"ObjectStore({self.address!r})"

    def __str__(self) -> str:
        """Its address."""
        return self.address

    @property
    def row_group_bytes(self) -> int:
        """See `Store.row_group_bytes`; small where ranges are copied."""
        return _ROW_GROUP_BYTES if self.bucket.scheme in S3_SCHEMES else ROW_GROUP_BYTES_MAX

    @property
    def address(self) -> str:
        """The address of its root."""
        return f"{self.bucket.url}/{self.prefix}".rstrip("/")

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`."""
        with self._failing(path, AccessRight.WRITE)():
            return self._put_new(path, data, _token())

    @contextmanager
    def writer(self, path: str) -> Iterator[pa.NativeFile]:
        """See `Store.writer`; above some megabytes only S3 checks whether the name exists."""
        key, token = self._key(path), _token()
        put = partial(self._put_new, path, token=token)
        upload = (
            PartsUpload(self.bucket, key, token, put)
            if self.bucket.scheme in S3_SCHEMES
            else StreamUpload(self.bucket, key, put)
        )
        with self._failing(path, AccessRight.WRITE)():
            try:
                with ObjectSink.over(upload) as sink:
                    yield sink
                upload.complete()
            except BaseException:
                upload.abort()
                raise

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        import obstore

        with self._failing(path, AccessRight.READ)():
            return bytes(obstore.get(self._client, self._key(path)).bytes())

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        """See `Store.open`."""
        import obstore

        key, failing = self._key(path), self._failing(path, AccessRight.READ)
        with failing():
            last: Any = {"range": {"suffix": max(tail_bytes, TAIL_BYTES)}}
            try:
                found = obstore.get(self._client, key, options=last)
                data: Any = found.bytes()
            except obstore.exceptions.GenericError:
                # An empty object has no range.
                found = obstore.get(self._client, key)
                data = found.bytes()
        meta = found.meta
        return ObjectFile.over(self.bucket, key, meta["e_tag"], data, meta["size"], failing)

    def replace(self, path: str, data: bytes) -> None:
        """Write a whole object in the place of another, as only a checkpoint of the log may be."""
        import obstore

        with self._failing(path, AccessRight.WRITE)():
            obstore.put(self._client, self._key(path), data)

    def size(self, path: str) -> int | None:
        """See `Store.size`."""
        import obstore

        with self._failing(path, AccessRight.READ)():
            try:
                return obstore.head(self._client, self._key(path))["size"]
            except FileNotFoundError:
                return None

    def modified_ms(self, path: str) -> EpochMs | None:
        """See `Store.modified_ms`."""
        import obstore

        with self._failing(path, AccessRight.READ)():
            try:
                moment = obstore.head(self._client, self._key(path))["last_modified"]
            except FileNotFoundError:
                return None
            return EpochMs(int(moment.timestamp() * 1000))

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`."""
        import obstore

        folder = prefix.rpartition("/")[0]
        start = len(self.prefix) + 1 if self.prefix else 0
        with self._failing(prefix, AccessRight.LIST)():
            listed = obstore.list(self._client, self._key(folder) if folder else self.prefix)
            found = sorted(meta["path"][start:] for some in listed for meta in some)
        return (path for path in found if path.startswith(prefix))

    def folders(self, folder: str = "") -> Sequence[str]:
        """See `Store.folders`."""
        import obstore

        key = self._key(folder) if folder else self.prefix
        with self._failing(folder, AccessRight.LIST)():
            found = obstore.list_with_delimiter(self._client, key or None)
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"])

    def delete(self, path: str) -> None:
        """See `Store.delete`."""
        import obstore

        with self._failing(path, AccessRight.DELETE)():
            try:
                obstore.delete(self._client, self._key(path))
            except FileNotFoundError:
                return

    def within(self, folder: str) -> ObjectStore:
        """See `Store.within`."""
        return ObjectStore(self.bucket, self._key(folder))

    @property
    def _client(self) -> Any:
        return self.bucket.client()

    def _key(self, path: str) -> str:
        if not _FORBIDDEN_PARTS.isdisjoint(path.split("/")) or "\0" in path:
            raise UsageError("a path must be relative and stay within the store", path=path)
        return f"{self.prefix}/{path}" if self.prefix else path

    def _put_new(self, path: str, data: bytes, token: str) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

        key = self._key(path)
        for pause in _pauses(self.bucket.patience):
            failure: Exception | None = None
            try:
                obstore.put(
                    self._client,
                    key,
                    data,
                    attributes={MARK: token},
                    mode="create",
                    use_multipart=False,
                )
            except (AlreadyExistsError, PreconditionError, GenericError) as error:
                failure = error
            if failure is None:
                return True
            # It may be ours, put by an attempt whose answer was lost; or nobody's, where the store
            # answered that another request was running.
            found = self._token_of(path)
            if found is not None:
                return found == token
            if pause is None:
                raise failure
            time.sleep(pause)
        raise AssertionError

    def _token_of(self, path: str) -> str | None:
        """The token that an object was put with, empty if it has none; None if it doesn't exist."""
        import obstore

        with self._failing(path, AccessRight.READ)():
            try:
                found = obstore.get(self._client, self._key(path), options={"head": True})
            except FileNotFoundError:
                return None
        return found.attributes.get(MARK, "")

    def _failing(self, path: str, right: AccessRight) -> Callable[[], AbstractContextManager[None]]:
        return partial(failing, path, self.address, right)


def _token() -> str:
    return secrets.token_hex(16)


def _pauses(patience: float) -> Iterator[float | None]:
    """Pauses after each attempt, growing; None after the last one."""
    ends, pause = time.monotonic() + patience, _FIRST_PAUSE
    while time.monotonic() + pause < ends:
        # Of random length, so that clients that collided once don't collide again.
        yield pause * (0.5 + secrets.randbelow(1000) / 1000)
        pause = min(2 * pause, _LONGEST_PAUSE)
    yield None
