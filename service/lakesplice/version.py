"""The version of this package, as it was installed."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version


def version() -> str:
    """Return the installed version, or `source` when run from a checkout that isn't installed."""
    try:
        return installed_version("lakesplice")
    except PackageNotFoundError:
        return "source"
