"""Uploads of objects: in parts on S3, some of them copied inside the store; streamed elsewhere.

A part has 5 MiB or more, except for the last one. So if a copy follows few new bytes, the first
bytes of its range are added to their part, and only the rest is copied inside the store.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pyarrow as pa

from lakesplice.errors import StorageError
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.storage.bucket_access import Bucket
from lakesplice.storage.object_files import ObjectFile, ObjectSink

PART_BYTES_MIN = 5 * 1024 * 1024
_PART_BYTES = 8 * 1024 * 1024
# The store copies each range in one step; several run in parallel.
_COPIED_BYTES_MAX = 256 * 1024 * 1024
_PARTS_MAX = 10_000
# A request more costs about as much as this many bytes; the marks of formats have four.
_MARK_BYTES_MAX = 1024
_THREADS = 4
MARK = "lakesplice-attempt"


class PartsUpload:
    """`Upload` to S3. A file that fits into one part is put at once, by `put`, which only
    creates.
    """

    def __init__(self, bucket: Bucket, key: str, token: str, put: Callable[[Any], bool]) -> None:
        self._bucket, self._key, self._token, self._put = bucket, key, token, put
        self._held = bytearray()
        self._upload_id: str | None = None
        self._parts: list[Future[str]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0

    def write(self, data: Any) -> int:
        """See `Upload.write`."""
        view = memoryview(data).cast("B")
        self._size += len(view)
        self._held += view
        while len(self._held) >= 2 * _PART_BYTES:
            self._send(_PART_BYTES)
        return len(view)

    def can_copy(self, source: pa.NativeFile) -> bool:
        """Whether ranges of the file can be copied inside the store."""
        return isinstance(source, ObjectFile) and source.bucket == self._bucket

    def copy(self, source: ObjectFile, offset: int, length: int) -> None:
        """Append bytes of another object; those that can be a part of their own are not read."""
        if self._precedes(source, offset):
            self._size -= offset
            self._held.clear()
            offset, length = 0, offset + length
        lacking = max(PART_BYTES_MIN - len(self._held), 0) if self._held else 0
        if length - lacking < PART_BYTES_MIN:
            lacking = length
        if lacking:
            (data,) = source.read_ranges([offset], [lacking])
            self.write(data)
            offset, length = offset + lacking, length - lacking
        if length:
            if self._held:
                self._send(len(self._held))
            self._size += length
        while length:
            # The rest must again be large enough for a part.
            taken = length if length <= _COPIED_BYTES_MAX else _COPIED_BYTES_MAX // 2
            self._copy_part(source, offset, taken)
            offset, length = offset + taken, length - taken

    def _precedes(self, source: ObjectFile, offset: int) -> bool:
        """Whether everything written so far is the beginning of the source, such as a format's
        mark.

        It is too small for a part, so it would take the first megabytes of the range with it.
        """
        held = len(self._held)
        if self._parts or not 0 < held == offset <= _MARK_BYTES_MAX:
            return False
        (found,) = source.read_ranges([0], [held])
        return bytes(found) == bytes(self._held)

    def complete(self) -> None:
        """See `Upload.complete`."""
        if self._upload_id is None:
            if not self._put(bytes(self._held)):
                raise _name_exists(self._key)
            return
        if self._held:
            self._send(len(self._held))
        parts = [
            {"PartNumber": number, "ETag": part.result()}
            for number, part in enumerate(self._parts, 1)
        ]
        self._close()
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client().complete_multipart_upload(
                **self._request_names(), MultipartUpload={"Parts": parts}, IfNoneMatch="*"
            )
        except (BotoCoreError, ClientError):
            # If the first answer was lost, the store no longer knows the upload at the retry.
            if not self._is_there():
                raise

    def abort(self) -> None:
        """See `Upload.abort`."""
        self._close()
        if self._upload_id is not None:
            with suppress(Exception):
                self._client().abort_multipart_upload(**self._request_names())

    def _client(self) -> Any:
        return self._bucket.parts_client()

    def _request_names(self) -> dict[str, Any]:
        named = {"Bucket": self._bucket.name, "Key": self._key}
        return named if self._upload_id is None else {**named, "UploadId": self._upload_id}

    def _send(self, size: int) -> None:
        data = bytes(memoryview(self._held)[:size])
        del self._held[:size]
        self._add(lambda number: self._sent(number, data))

    def _sent(self, number: int, data: bytes) -> str:
        answer = self._client().upload_part(**self._request_names(), PartNumber=number, Body=data)
        return str(answer["ETag"])

    def _copy_part(self, source: ObjectFile, offset: int, length: int) -> None:
        self._add(lambda number: self._copied(number, source, offset, length))

    def _copied(self, number: int, source: ObjectFile, offset: int, length: int) -> str:
        condition = {} if source.etag is None else {"CopySourceIfMatch": source.etag}
        answer = self._client().upload_part_copy(
            **self._request_names(),
            **condition,
            PartNumber=number,
            CopySource={"Bucket": source.bucket.name, "Key": source.key},
            CopySourceRange=f"bytes={offset}-{offset + length - 1}",
        )
        return str(answer["CopyPartResult"]["ETag"])

    def _add(self, part: Callable[[int], str]) -> None:
        if self._upload_id is None:
            answer = self._client().create_multipart_upload(
                **self._request_names(), Metadata={MARK: self._token}
            )
            self._upload_id = answer["UploadId"]
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="upload")
        if len(self._parts) == _PARTS_MAX:
            raise StorageError("a file needs more parts than the store allows", path=self._key)
        assert self._pool is not None
        # Memory holds the parts that are being sent; a failure is raised here rather than at the
        # end.
        if len(self._parts) >= _THREADS:
            self._parts[-_THREADS].result()
        self._parts.append(self._pool.submit(part, len(self._parts) + 1))

    def _is_there(self) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = self._client().head_object(Bucket=self._bucket.name, Key=self._key)
        except (BotoCoreError, ClientError):
            return False  # why completing failed says more
        return bool(found.get("Metadata", {}).get(MARK) == self._token)

    def _close(self) -> None:
        if self._pool is not None:
            for part in self._parts:
                part.cancel()
            self._pool.shutdown()


class StreamUpload:
    """`Upload` to a store that can't copy ranges."""

    def __init__(self, bucket: Bucket, key: str, put: Callable[[Any], bool]) -> None:
        self._bucket, self._key, self._put = bucket, key, put
        self._held = bytearray()
        self._writer: Any = None

    def write(self, data: Any) -> int:
        """See `Upload.write`."""
        view = memoryview(data).cast("B")
        self._held += view
        if len(self._held) >= 2 * _PART_BYTES:
            self._flush()
        return len(view)

    def complete(self) -> None:
        """See `Upload.complete`; above some megabytes the name is not asked for before."""
        if self._writer is None:
            if not self._put(bytes(self._held)):
                raise _name_exists(self._key)
            return
        self._flush()
        self._writer.close()

    def abort(self) -> None:
        """See `Upload.abort`: an upload that isn't closed never becomes visible."""
        self._writer = None

    def _flush(self) -> None:
        import obstore

        if self._writer is None:
            self._writer = obstore.open_writer(self._bucket.client(), self._key)
        self._writer.write(bytes(self._held))
        self._held = bytearray()


class PartsSink(StreamSink):
    """`Sink` on an object in parts: copies inside the store if the source is there, too."""

    def __init__(self, stream: ObjectSink, upload: PartsUpload) -> None:
        super().__init__(stream)
        self._upload = upload
        self._copied = 0

    def copies_inside(self, source: pa.NativeFile) -> bool:
        """See `Sink.copies_inside`."""
        return self._upload.can_copy(source)

    def copy(self, source: pa.NativeFile, offset: int, length: int) -> None:
        """See `Sink.copy`."""
        if not self._upload.can_copy(source):
            super().copy(source, offset, length)
            return
        self._upload.copy(source, offset, length)
        self._copied += length

    def tell(self) -> int:
        """See `Sink.tell`."""
        return super().tell() + self._copied


def _name_exists(key: str) -> StorageError:
    return StorageError(
        "a file of this name exists; names are never used twice, so this is a bug in Lakesplice",
        path=key,
    )
