"""How buckets are reached: addresses, options, and the clients made from them.

Options have the names that Delta Lake's writers use, such as `aws_region` and `aws_endpoint`, in
any case, with `aws_` or without. Options that aren't given are taken from where the cloud's own
tools look: the environment, profiles, the machine's or the pod's role.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lakesplice.errors import UsageError

S3_SCHEMES = frozenset(("s3", "s3a"))
SCHEMES = S3_SCHEMES | {"gs", "az", "azure", "abfs", "abfss", "adl"}
_CONNECT_SECONDS = 5
_OF_CLIENT = frozenset(("allow_http", "allow_invalid_certificates", "proxy_url"))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or a container, and how to reach it.

    `timeout` is the limit of one request, `patience` the time during which a failed one is retried,
    both in seconds. Equal buckets share their clients within a process; copies sent to another
    process make their own there.
    """

    url: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = 60.0
    patience: float = 120.0

    @classmethod
    def of(cls, url: str, options: Mapping[str, str] | None = None, **more: float) -> Bucket:
        """Return the bucket of an address without its path."""
        known = {_option_name(name): value for name, value in (options or {}).items()}
        return cls(url, tuple(sorted(known.items())), **more)

    @property
    def scheme(self) -> str:
        """What comes before `://`."""
        return self.url.partition(":")[0]

    @property
    def name(self) -> str:
        """The bucket's name."""
        return urlsplit(self.url).netloc

    def client(self) -> Any:
        """Return the client for everything except copies inside the store."""
        with _lock:
            return _client(self)

    def parts_client(self) -> Any:
        """Return a client of S3 that can copy ranges inside the store: boto3's."""
        with _lock:
            return _parts_client(self)


# Clients are made once, even if several threads need one at the same time.
_lock = threading.Lock()


def parse(uri: str | Path) -> Path | tuple[str, str]:
    """Return the path of a local address, or bucket URL and path of one in an object store.

    `UsageError` for an address of another kind.
    """
    if isinstance(uri, Path) or "://" not in uri:
        return Path(uri)
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if parts.scheme not in SCHEMES or not parts.netloc:
        raise UsageError(
            "no such storage; give a path, or an address such as s3://bucket/lake",
            uri=uri,
            schemes=sorted(SCHEMES),
        )
    if parts.query or parts.fragment:
        raise UsageError("an address has no query; set options instead", uri=uri)
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")


def _option_name(name: str) -> str:
    # An environment variable gives dots in the option's name, as options of Kafka and Spark have.
    return name.lower().replace(".", "_").removeprefix("aws_")


@lru_cache(maxsize=64)
def _client(bucket: Bucket) -> Any:
    from obstore import store

    options = dict(bucket.options)
    client: dict[str, Any] = {
        "timeout": timedelta(seconds=bucket.timeout),
        "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
    }
    for name in _OF_CLIENT & options.keys():
        value = options.pop(name)
        client[name] = value if name == "proxy_url" else _is_yes(value)
    connect: Any = store.from_url  # which options there are depends on the scheme
    return connect(
        bucket.url,
        config=_endpoint(options),
        client_options=client,
        retry_config={
            "max_retries": 100,  # time is what bounds them
            "retry_timeout": timedelta(seconds=bucket.patience),
            "backoff": {"max_backoff": timedelta(seconds=5)},
        },
    )


def _is_yes(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true", "yes")


def _endpoint(options: dict[str, str]) -> dict[str, str]:
    """The options, with the endpoint under a single name."""
    endpoint = options.pop("endpoint_url", None)
    return options if endpoint is None else {**options, "endpoint": endpoint}


@lru_cache(maxsize=64)
def _parts_client(bucket: Bucket) -> Any:
    import boto3
    from botocore.config import Config

    options = _endpoint(dict(bucket.options))
    endpoint = options.get("endpoint")
    virtual = _is_yes(options.get("virtual_hosted_style_request"))
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=bucket.timeout,
        retries={"mode": "standard", "total_max_attempts": 8},
        max_pool_connections=32,
        s3={"addressing_style": "path" if endpoint and not virtual else "auto"},
        # Some servers with S3's interface don't support newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    session = boto3.session.Session(
        aws_access_key_id=options.get("access_key_id"),
        aws_secret_access_key=options.get("secret_access_key"),
        aws_session_token=options.get("session_token"),
        region_name=options.get("region") or options.get("default_region"),
    )
    verify = not _is_yes(options.get("allow_invalid_certificates"))
    return session.client("s3", endpoint_url=endpoint, config=config, verify=verify)
