"""What a catalog's errors mean for whoever runs the service: which setting is wrong, or what to
wait for.

Other errors aren't changed; after them it is unknown whether the catalog did what was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyiceberg.exceptions import (
    ForbiddenError,
    NotInstalledError,
    OAuthError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from requests import RequestException
from sqlalchemy.exc import DBAPIError

from lakesplice.errors import ConfigurationError, StorageError
from lakesplice.secrets import masked_text

_ADDRESS = "uri"
_UNAVAILABLE = (RequestException, ServiceUnavailableError, TooManyRequestsError, DBAPIError)


@contextmanager
def explained(properties: Mapping[str, str]) -> Iterator[None]:
    """Raise pyiceberg's errors within the block as errors that say what to do; `properties` are
    those of the catalog.

    `StorageError` if it doesn't answer, `ConfigurationError` if it refuses the credentials or if a
    package is missing.
    """
    at = {"uri": masked_text(properties[_ADDRESS])} if properties.get(_ADDRESS) else {}
    try:
        yield
    except (UnauthorizedError, OAuthError, ForbiddenError) as error:
        raise ConfigurationError(
            "the Iceberg catalog refuses the credentials; set iceberg.catalog, or variables such as"
            " PYICEBERG_CATALOG__LAKESPLICE__CREDENTIAL, to an account that may create and change"
            " tables",
            **at,
            cause=masked_text(str(error)),
        ) from error
    except NotInstalledError as error:
        raise ConfigurationError(
            "this type of Iceberg catalog needs a package that isn't installed; install what the"
            " cause names beside Lakesplice",
            cause=masked_text(str(error)),
        ) from error
    except _UNAVAILABLE as error:
        raise StorageError(
            "the Iceberg catalog doesn't answer; see that it runs and that iceberg.catalog has its"
            " address",
            **at,
            cause=masked_text(str(error)),
        ) from error
