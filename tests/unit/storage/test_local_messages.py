"""A local store's messages if the operating system refuses a call."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lakesplice.errors import StorageError, TableNotFoundError
from lakesplice.storage.local import LocalStore, _raise_storage_error
from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.stores import open_store
from lakesplice.table.protocol.snapshot import open_snapshot


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "the right to read and write"),
        (errno.EPERM, "the right to read and write"),
        (errno.EROFS, "mount it writable"),
        (errno.ENOSPC, "free space"),
        (errno.EMFILE, "limit of open files"),
        (errno.EBUSY, "check the disk and the folder"),
    ],
)
def test_a_refusal_names_its_remedy_and_the_whole_path(number: int, remedy: str) -> None:
    """Tests run as root, whom no right stops: so by the error that others get."""
    error = OSError(number, "refused", "/lake/shop/orders")
    with pytest.raises(StorageError) as refused:
        _raise_storage_error(error, "")
    text = str(refused.value)
    assert remedy in text
    assert "/lake/shop/orders" in text
    assert ("free space" in text) == (number == errno.ENOSPC)


def test_a_name_that_is_too_long_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="shorter name"):
        LocalStore(tmp_path).put_new("x" * 300, b"")


def test_messages_name_addresses_as_people_write_them(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as missing:
        open_snapshot(LocalStore(tmp_path))
    assert str(tmp_path) in str(missing.value)
    assert "LocalStore" not in str(missing.value)
    bucket = open_store("s3://bucket/lake")
    assert isinstance(bucket, ObjectStore)
    assert str(bucket) == "s3://bucket/lake"
