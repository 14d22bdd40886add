"""The schema registry that the configuration names."""

from __future__ import annotations

from lakesplice.config.sections.schema_registry import SchemaRegistrySettings
from lakesplice.storage.schema_registry import RegistryAccess, SchemaRegistry
from lakesplice.table.protocol.ports import SchemaSource


def registry_of(settings: SchemaRegistrySettings) -> SchemaSource | None:
    """Return the registry to ask for schemas, None if there is none; nothing is asked yet."""
    if settings.url is None:
        return None
    access = RegistryAccess(
        tuple(settings.url.split(",")),
        settings.numbers,
        settings.timeout_seconds,
        settings.retries,
        tuple(sorted(settings.options.items())),
    )
    return SchemaRegistry(access)
