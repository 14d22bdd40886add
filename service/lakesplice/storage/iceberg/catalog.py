"""Opens Iceberg catalogs and the mirrors of tables in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lakesplice.model.names import TableName
from lakesplice.storage.bucket_access import S3_SCHEMES
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import AnyStore

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from lakesplice.storage.iceberg.mirror_table import IcebergMirror

# The names of pyiceberg for options that Delta Lake's writers know.
_S3_OPTIONS = {
    "endpoint": "s3.endpoint",
    "endpoint_url": "s3.endpoint",
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "region": "s3.region",
    "default_region": "s3.region",
}


def table_address(store: AnyStore) -> str:
    """Return the address of a table's folder as Iceberg's readers know it."""
    if isinstance(store, LocalStore):
        return f"file://{store.root.as_posix()}"
    parts = urlsplit(store.address)
    if parts.scheme in S3_SCHEMES:
        return f"s3://{parts.netloc}{parts.path}"
    return store.address


def open_mirror(
    properties: Mapping[str, str], store: AnyStore, name: TableName, namespace: str = ""
) -> IcebergMirror:
    """Return the mirror of the table at a store's root, in a catalog with pyiceberg's properties.

    It is called as its table's folder, in `namespace` or in one called as its database's folder.
    Connects to the catalog at first; errors as pyiceberg has them.
    """
    from lakesplice.storage.iceberg.mirror_table import IcebergMirror

    database, _, table = name.path.partition("/")
    catalog = _catalog(tuple(sorted({**_options_of(store), **properties}.items())))
    return IcebergMirror(catalog, (namespace or database, table), table_address(store))


def _options_of(store: AnyStore) -> dict[str, str]:
    if isinstance(store, LocalStore) or store.bucket.scheme not in S3_SCHEMES:
        return {}
    return {_S3_OPTIONS[name]: text for name, text in store.bucket.options if name in _S3_OPTIONS}


@lru_cache(maxsize=8)
def _catalog(properties: tuple[tuple[str, str], ...]) -> Catalog:
    from pyiceberg.catalog import load_catalog

    return load_catalog("lakesplice", **dict(properties))
