"""Translates failed requests of a bucket's client to errors that say what to do.

A store refuses a request for one of two reasons: the credentials are wrong, or they don't allow the
request. In the second case the error names the missing right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from lakesplice.errors import LakespliceError, MissingFileError, StorageError


class AccessRight(StrEnum):
    """The right that a request needs."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    LIST = "list"


_S3 = {
    AccessRight.READ: "s3:GetObject",
    AccessRight.WRITE: "s3:PutObject",
    AccessRight.DELETE: "s3:DeleteObject",
    AccessRight.LIST: "s3:ListBucket",
}
_GOOGLE = {
    AccessRight.READ: "storage.objects.get",
    AccessRight.WRITE: "storage.objects.create",
    AccessRight.DELETE: "storage.objects.delete",
    AccessRight.LIST: "storage.objects.list",
}
# Azure grants all of them by one role, Storage Blob Data Contributor.
_NAMES: Mapping[str, Mapping[AccessRight, str]] = {"s3": _S3, "s3a": _S3, "gs": _GOOGLE}
_NOT_BELIEVED = frozenset(
    (
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidToken",
        "ExpiredToken",
        "InvalidTokenId",
    )
)
_NOT_ALLOWED = frozenset(("AccessDenied", "AllAccessDisabled"))
# The body of the answer, or the client's form of it.
_ANSWER = re.compile(r"<Code>(\w+)</Code>\s*<Message>([^<]*)|([^:\n]*) \(code: (\w+)\)")


@contextmanager
def failing(path: str, store: str, right: AccessRight) -> Iterator[None]:
    """Raise the clients' errors as ours; `right` is the right that the request needs."""
    from botocore.exceptions import BotoCoreError, ClientError
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    try:
        yield
    except LakespliceError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError("there is no such file in the store", path=path) from error
    except (BaseError, BotoCoreError, ClientError) as error:
        code, cause = _code_and_cause(error)
        facts = {"path": path, "store": store, "cause": cause}
        if code in _NOT_BELIEVED:
            raise StorageError(
                "the object store doesn't accept the credentials; correct them", **facts
            ) from error
        named = _NAMES.get(store.partition(":")[0], {}).get(right, str(right))
        if code in _NOT_ALLOWED:
            raise StorageError(
                "the object store refuses; give the user the right to this", right=named, **facts
            ) from error
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            # An answer without a body doesn't show which of the two reasons it is.
            raise StorageError(
                "the object store refuses; check the credentials, and that they give the right",
                right=named,
                **facts,
            ) from error
        raise StorageError(
            "the object store failed at every retry; check that it is up, then try again", **facts
        ) from error


def _code_and_cause(error: Exception) -> tuple[str, str]:
    """Return the code of the store's answer, empty without one, and the cause in a line."""
    answer = getattr(error, "response", {}).get("Error", {})
    if answer:
        return str(answer.get("Code", "")), str(error)
    text = str(error)
    found = _ANSWER.search(text)
    if found is None:
        return "", next(iter(text.splitlines()), type(error).__name__)
    code = found[1] or found[4]
    return code, f"{code}: {(found[2] or found[3]).strip()}"
