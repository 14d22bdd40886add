"""The whole examination: the steps, what each of them needs, and the order in which they are
shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakesplice.apps.doctor import machine, sources
from lakesplice.apps.doctor.kafka import KafkaExamination
from lakesplice.apps.doctor.lake import LakeExamination
from lakesplice.apps.doctor.step_runner import Step, StepRunner
from lakesplice.config import Settings
from lakesplice.planning.diagnosis.finding import Finding
from lakesplice.planning.diagnosis.machine import judge_port
from lakesplice.spark.session import on_one_machine

AREAS = (
    *("machine", "lake", "broker", "topics", "records", "registry", "connector", "database"),
    "iceberg",
)


@dataclass(frozen=True, slots=True)
class Access:
    """How the database is reached, and how long the whole examination may take, in seconds."""

    password: str = ""
    certificates: str | None = None
    timeout_seconds: float = 60.0

    @property
    def answer_seconds(self) -> float:
        """How long to wait for one answer."""
        return self.timeout_seconds / 4


def examine(settings: Settings, access: Access) -> list[Finding]:
    """Examine everything that the configuration names, and return the findings by area.

    Blocks for at most `timeout_seconds`. Starts a JVM in this process; threads that still wait for
    an answer then don't keep the process from ending. Never raises what it finds.
    """
    tracks = _tracks(settings, access)
    found = [one for track in tracks for one in track.findings(access.timeout_seconds)]
    return sorted(found, key=lambda one: AREAS.index(one.area))


def _tracks(settings: Settings, access: Access) -> list[StepRunner]:
    seconds = access.answer_seconds
    lake, kafka = LakeExamination(settings, seconds), KafkaExamination(settings, seconds)
    doctor = settings.doctor

    def selected() -> list[str] | None:
        return kafka.selected_topics(access.timeout_seconds / 2)

    plans = [
        [
            Step("machine", "java", machine.java),
            Step("broker", "address", kafka.servers),
            Step("broker", "version", kafka.client, ("java", "address")),
            Step("topics", "matched", kafka.selection, ("version",), kafka.selection_ended.set),
            Step("broker", "topics", kafka.topics, ("version",)),
            Step("records", "format", kafka.records, ("version", "matched")),
            *_of_cluster(settings),
        ],
        [
            Step("machine", "memory", lambda: machine.memory(settings)),
            Step("machine", "disk", lambda: machine.rooms(settings, lake.folder)),
            Step("lake", "place", lake.place),
            Step("lake", "put-if-absent", lake.probe, ("place",)),
            Step("lake", "driver", lake.driver, ("place",)),
            Step("machine", "metrics port", lambda: _port(settings, lake)),
        ],
    ]
    if settings.iceberg.catalog:
        plans.append([Step("iceberg", "catalog", lake.catalog)])
    if settings.schema_registry.url:
        plans.append([Step("registry", "schemas", lambda: sources.registry(settings, seconds))])
    if doctor.connect_url:
        step = Step(
            "connector", "connectors", lambda: sources.connect(settings, selected(), seconds)
        )
        plans.append([step])
    if doctor.database:
        reach = (access.password, access.certificates, seconds)
        plans.append([Step("database", "version", lambda: sources.database(settings, *reach))])
    return [StepRunner(steps) for steps in plans]


def _of_cluster(settings: Settings) -> list[Step]:
    if on_one_machine(settings.spark.master):
        return []
    return [Step("machine", "executors", lambda: machine.executors(settings), ("java",))]


def _port(settings: Settings, lake: LakeExamination) -> Iterator[Finding]:
    if settings.metrics.enabled and settings.metrics.port:
        driver = lake.driver_facts()
        free = machine.port_is_free(settings)
        yield judge_port(settings.metrics.port, free, driver is not None and driver.running)
