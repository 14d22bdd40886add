"""The least policy of docs/buckets.md on a real S3 server: with it a lake works, and an error names
a missing right. Wrong credentials give an error at once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.errors import StorageError
from lakesplice.storage.bucket_access import Bucket
from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.uploads import PART_BYTES_MIN
from lakesplice.testing.s3_server import S3Server, client
from tests.support.machine import ROOT

REFUSED_SECONDS_MAX = 15.0
NAMED = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket")
ABORT = "s3:AbortMultipartUpload"
LARGE = 4 * PART_BYTES_MIN
FOREIGN = np.random.default_rng(7).bytes(LARGE)


def least_policy(bucket: str, user: str) -> list[dict[str, Any]]:
    """The statements of the document, about a bucket of ours, as the bucket's own policy."""
    page = (ROOT / "docs" / "buckets.md").read_text()
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    statements = json.loads(text.replace("arn:aws:s3:::bucket", f"arn:aws:s3:::{bucket}"))
    return [{**one, "Principal": {"AWS": [user]}} for one in statements["Statement"]]


def without(statements: list[dict[str, Any]], right: str) -> list[dict[str, Any]]:
    found = []
    for one in statements:
        actions = one["Action"] if isinstance(one["Action"], list) else [one["Action"]]
        left = [action for action in actions if action != right]
        found += [{**one, "Action": left}] if left else []
    return found


@dataclass
class Place:
    """A bucket, and a user of it who has the policy of the document."""

    server: S3Server
    bucket: str = field(init=False)
    reach: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.bucket, self.reach = self.server.make_bucket(), self.server.make_user()
        self.policy = least_policy(self.bucket, self.reach["aws_access_key_id"])
        self.server.allow(self.bucket, self.policy)

    def store(self, **options: str) -> ObjectStore:
        bucket = Bucket.of(f"s3://{self.bucket}", {**self.reach, **options}, patience=20.0)
        return ObjectStore(bucket, "lake")


@pytest.fixture
def place(s3_server: S3Server) -> Place:
    return Place(s3_server)


def rows(first: int, count: int) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table({"id": ids, "name": [f"thing {n}" for n in ids]})


def write_large(
    store: ObjectStore, path: str = "large", then: type[BaseException] | None = None
) -> None:
    with store.writer(path) as sink:
        sink.write(FOREIGN)
        if then is not None:
            raise then


def test_a_table_lives_with_the_least_policy(place: Place) -> None:
    address = f"s3://{place.bucket}/lake/shop/goods"
    table = Table.create(address, rows(0, 5_000), key=["id"], options=place.reach)
    table.upsert(rows(4_000, 2_000), delete=pa.table({"id": [0]}))
    table.compact()
    table.vacuum()
    assert Table.open(address, options=place.reach).read("read_optimised").num_rows == 5_999
    store = place.store()
    write_large(store)
    store.delete("large")
    assert store.size("large") is None
    outside = ObjectStore(store.bucket, "elsewhere")
    with pytest.raises(StorageError, match=r"give the user the right .*right='s3:PutObject'"):
        outside.put_new("file", b"1")


# What each right is needed for, of the calls that a store has.
USES: dict[str, tuple[Callable[[ObjectStore], object], ...]] = {
    "s3:GetObject": (
        lambda store: store.read("there"),
        lambda store: store.open("there"),
        lambda store: store.size("there"),
        lambda store: store.modified_ms("there"),
        lambda store: store.put_new("there", b"another"),
    ),
    "s3:PutObject": (lambda store: store.put_new("new", b"1"), write_large),
    "s3:DeleteObject": (lambda store: store.delete("there"),),
    "s3:ListBucket": (lambda store: list(store.list("")), lambda store: store.folders()),
}


@pytest.mark.parametrize("right", NAMED)
def test_an_error_names_the_right_that_is_missing(place: Place, right: str) -> None:
    store = place.store()
    store.put_new("there", b"1")
    place.server.allow(place.bucket, without(place.policy, right))
    for use in USES[right]:
        with pytest.raises(StorageError) as refused:
            use(store)
        assert refused.value.facts["right"] == right
    for other in NAMED:
        if other not in (right, "s3:GetObject", "s3:DeleteObject"):
            for number, use in enumerate(USES[other]):
                use(ObjectStore(store.bucket, f"lake/{number}"))


def test_without_the_right_to_abort_an_upload_its_parts_stay(place: Place) -> None:
    def leave_one() -> int:
        with pytest.raises(KeyboardInterrupt):
            write_large(place.store(), "left", then=KeyboardInterrupt)
        found = client(place.server.endpoint).list_multipart_uploads(Bucket=place.bucket)
        return len(found.get("Uploads", []))

    assert leave_one() == 0
    place.server.allow(place.bucket, without(place.policy, ABORT))
    assert leave_one() == 1


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"aws_secret_access_key": "not this one"}, "SignatureDoesNotMatch"),
        ({"aws_access_key_id": "nobody"}, "InvalidAccessKeyId"),
    ],
)
def test_wrong_credentials_are_reported_at_once_with_the_stores_words(
    place: Place, wrong: dict[str, str], code: str
) -> None:
    store, started = place.store(**wrong), time.monotonic()
    for use in (lambda: store.read("a"), lambda: store.put_new("a", b"1"), store.folders):
        with pytest.raises(StorageError, match="doesn't accept the credentials") as refused:
            use()
        assert str(refused.value.facts["cause"]).startswith(code)
    with pytest.raises(StorageError, match=code):
        write_large(store)
    assert time.monotonic() - started < REFUSED_SECONDS_MAX
