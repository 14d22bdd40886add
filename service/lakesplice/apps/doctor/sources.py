"""Facts about the source's side: its database, Kafka Connect and the schema registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakesplice.apps.record_reading import registry_of
from lakesplice.config import Settings
from lakesplice.planning.diagnosis.connector import (
    ConnectorFacts,
    is_looked_at,
    is_of_mysql,
    judge_connectors,
)
from lakesplice.planning.diagnosis.database import VARIABLES, DatabaseFacts, judge_database
from lakesplice.planning.diagnosis.finding import Area, Finding
from lakesplice.planning.schema.policy import PartialImages
from lakesplice.storage.connect import Connector, connectors
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.server import source_server
from lakesplice.storage.system import SystemClock


def database(
    settings: Settings, password: str, certificates: str | None, timeout_seconds: float
) -> Iterator[Finding]:
    """Ask the source's server, which `doctor.database` names."""
    address = DatabaseAddress.of_server(settings.doctor.database or "", password)
    clock = SystemClock()
    server = source_server(address, VARIABLES, clock, timeout_seconds, certificates)
    facts = DatabaseFacts(server.version, server.variables, server.grants, server.skew_seconds)
    partial = settings.partial_images is PartialImages.APPLY
    yield from judge_database(facts, settings.doctor.longest_outage, partial_images=partial)


def connect(
    settings: Settings, topics: Sequence[str] | None, timeout_seconds: float
) -> Iterator[Finding]:
    """Ask Kafka Connect, which `doctor.connect_url` names; `topics` are those that are read, None
    if they aren't known.
    """
    doctor = settings.doctor
    found = connectors(
        doctor.connect_url or "", doctor.connect_user_info, is_looked_at, timeout_seconds
    )
    facts = [_connector_facts(one, settings, topics) for one in found if is_of_mysql(one.kind)]
    yield from judge_connectors(facts)


def _connector_facts(
    one: Connector, settings: Settings, topics: Sequence[str] | None
) -> ConnectorFacts:
    prefix = one.settings.get("topic.prefix", "")
    read = None if topics is None else any(name.startswith(f"{prefix}.") for name in topics)
    return ConnectorFacts(
        one.name,
        one.state,
        tasks=len(one.tasks),
        tasks_failed=sum(state == "FAILED" for state in one.tasks),
        settings=one.settings,
        is_read=read,
        types_told=prefix in settings.schema_change_topics.names,
    )


def registry(settings: Settings, timeout_seconds: float) -> Iterator[Finding]:
    """Ask the schema registry for a schema, in the way the service does."""
    hasty = {"timeout_seconds": min(settings.schema_registry.timeout_seconds, timeout_seconds)}
    found = registry_of(settings.schema_registry.model_copy(update={**hasty, "retries": 0}))
    if found is not None:
        # It doesn't matter whether it has the number: only a registry answers that it doesn't.
        found.schemas([1])
        yield Area("registry").ok("schemas", f"{settings.schema_registry.url} answers")
