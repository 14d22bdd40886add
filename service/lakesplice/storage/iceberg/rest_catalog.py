"""pyiceberg's client of REST catalogs, with time limits.

pyiceberg itself has none: a mirror would wait forever, without an error, for a server that vanished
in the middle of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.utils.config import Config, merge_config

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

NAME = "lakesplice"
"""What the catalog is called, here and in pyiceberg's own configuration."""
CONNECT_SECONDS_MAX, ANSWER_SECONDS_MAX = 10.0, 120.0

_TYPE, _ADDRESS, _OWN_CLASS = "type", "uri", "py-catalog-impl"


class LimitedRestCatalog(RestCatalog):
    """A REST catalog. A request fails if the server doesn't accept the connection within 10 s, or
    sends nothing for 120 s.
    """

    def _create_session(self) -> Session:
        session = super()._create_session()
        for adapter in session.adapters.values():
            # Not a subclass: the library has an adapter of its own for signed requests.
            adapter.send = _limited(adapter.send)  # type: ignore[method-assign]  # no subclass fits
        return session


def catalog_of(properties: Mapping[str, str]) -> Catalog:
    """Return the catalog with these properties, and those of pyiceberg's own configuration.

    Blocks: a REST catalog is asked for its configuration. `ValueError` if the properties are wrong;
    other errors are pyiceberg's.
    """
    configured = Config().get_catalog_config(NAME) or {}
    merged: dict[str, Any] = merge_config(configured, dict(properties))
    if _OWN_CLASS not in merged and _type_of(merged) is CatalogType.REST:
        if _ADDRESS not in merged:
            raise ValueError("uri is missing")
        return LimitedRestCatalog(NAME, **merged)
    return load_catalog(NAME, **properties)


def _type_of(properties: dict[str, Any]) -> CatalogType | None:
    said = properties.get(_TYPE)
    return CatalogType(str(said).lower()) if said else infer_catalog_type(NAME, properties)


def _limited(send: Callable[..., Response]) -> Callable[..., Response]:
    def limited(request: PreparedRequest, **options: Any) -> Response:
        options["timeout"] = options.get("timeout") or (CONNECT_SECONDS_MAX, ANSWER_SECONDS_MAX)
        return send(request, **options)

    return limited
