"""Opens Iceberg catalogs and the mirrors of tables in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lakesplice.errors import ConfigurationError
from lakesplice.model.names import TableName
from lakesplice.secrets import masked_text
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

    The Iceberg table has the name of the table's folder, in `namespace`; if that is empty, in the
    namespace with the name of the database's folder. The first call connects to the catalog. Errors
    are those of `catalog_errors.explained`.
    """
    from lakesplice.storage.iceberg.catalog_errors import explained
    from lakesplice.storage.iceberg.mirror_table import IcebergMirror

    database, _, table = name.path.partition("/")
    with explained(properties):
        catalog = _opened(properties, store)
    return IcebergMirror(catalog, (namespace or database, table), table_address(store))


def namespaces(properties: Mapping[str, str], store: AnyStore) -> list[str]:
    """Return the names of a catalog's namespaces. Blocks until the catalog answers; errors as
    `open_mirror`. In the database of a SQL catalog pyiceberg creates its own tables if they are
    missing.
    """
    from lakesplice.storage.iceberg.catalog_errors import explained

    with explained(properties):
        return sorted(".".join(name) for name in _opened(properties, store).list_namespaces())


def forget_catalogs() -> None:
    """Have the next mirror connect again: an old connection may be why a call failed."""
    _catalog.cache_clear()


def _opened(properties: Mapping[str, str], store: AnyStore) -> Catalog:
    try:
        return _catalog(tuple(sorted({**_options_of(store), **properties}.items())))
    except ValueError as error:
        raise ConfigurationError(
            "pyiceberg doesn't take these properties of iceberg.catalog; set what the cause names",
            cause=masked_text(str(error)),
        ) from error


def _options_of(store: AnyStore) -> dict[str, str]:
    if isinstance(store, LocalStore) or store.bucket.scheme not in S3_SCHEMES:
        return {}
    return {_S3_OPTIONS[name]: text for name, text in store.bucket.options if name in _S3_OPTIONS}


@lru_cache(maxsize=8)
def _catalog(properties: tuple[tuple[str, str], ...]) -> Catalog:
    from lakesplice.storage.iceberg.rest_catalog import catalog_of

    return catalog_of(dict(properties))
