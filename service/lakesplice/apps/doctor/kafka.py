"""Facts about Kafka: whether it can be reached, its topics, and what their records show.

The service's own client asks for them, in a JVM without a Spark session.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakesplice.apps.doctor.records import record_facts, table_of
from lakesplice.apps.doctor.step_runner import failure
from lakesplice.apps.record_reading import broker_access, registry_of
from lakesplice.config import Settings, history_settings
from lakesplice.errors import ConfigurationError, LakespliceError, SourceUnavailable, UsageError
from lakesplice.model.names import TableName
from lakesplice.planning.diagnosis.broker import (
    BrokerFacts,
    ServerFacts,
    TopicFacts,
    judge_group,
    judge_letter_topic,
    judge_schema_topics,
    judge_servers,
    judge_silence,
    judge_topics,
    judge_version,
)
from lakesplice.planning.diagnosis.finding import Area, Finding
from lakesplice.planning.diagnosis.machine import judge_archive
from lakesplice.planning.diagnosis.records import RecordFacts, judge_records
from lakesplice.planning.diagnosis.topics import SelectionFacts, judge_selection
from lakesplice.planning.shape.metadata_columns import RecordOrigin
from lakesplice.planning.shape.shaping import shard_of
from lakesplice.spark.class_archive import making_command, use_archive
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars, folder_of
from lakesplice.spark.jvm import start_jvm
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.kafka.broker_questions import cluster, topic_descriptions
from lakesplice.spark.kafka.consumer_group import ConsumerGroup
from lakesplice.spark.kafka.record_samples import RecordSampler
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.spark.session import session_properties

_ANY = ".*"
_FIRST, _NEWEST = 10, 30
_TOPIC_SETTINGS = ("retention.ms", "retention.bytes", "cleanup.policy")
_JVM_MEMORY = "512m"


class KafkaExamination:
    """Asks a broker, step by step; a step that fails raises. One thread calls the steps in their
    order. Any thread may call `selected_topics`.
    """

    def __init__(self, settings: Settings, timeout_seconds: float) -> None:
        """`timeout_seconds` is how long to wait for one answer."""
        self._settings = settings
        self._timeout = timeout_seconds
        self._jvm: Any = None
        self._admin: KafkaAdmin | None = None
        self._brokers = 0
        self._tables: dict[str, TableName] = {}
        self._topics: Mapping[str, Topic] = {}
        self._records_until = time.monotonic() + 3.5 * timeout_seconds
        self._is_selected = False
        self.selection_ended = threading.Event()

    @property
    def topic_names(self) -> list[str]:
        """The topics that are read; empty until `selection` found them."""
        return sorted(self._tables)

    def selected_topics(self, seconds: float) -> list[str] | None:
        """Return the topics that are read; None if they aren't found within `seconds`. Blocks until
        `selection_ended` is set.
        """
        self.selection_ended.wait(seconds)
        return self.topic_names if self._is_selected else None

    def servers(self) -> Iterator[Finding]:
        """Connect to each server's port; this needs no Java."""
        servers = self._settings.kafka.bootstrap_servers.split(",")
        yield judge_servers([ServerFacts(one, self._refusal(one)) for one in servers])

    def client(self) -> Iterator[Finding]:
        """Start a JVM with Kafka's client and ask which cluster answers. Fetches the jars if they
        are missing.
        """
        spark = self._settings.spark
        cache = spark.jars_folder
        if not (folder := folder_of(SPARK_KAFKA, cache)).is_dir():
            yield Area("machine").ok("jars", f"fetched now, into {folder.parent}")
        jars = ensure_jars(SPARK_KAFKA, cache)
        archive = use_archive(cache)
        yield judge_archive("" if archive else making_command(cache))
        properties = session_properties(spark.master, _JVM_MEMORY, jars, spark.options, archive)
        with tempfile.TemporaryFile() as written:
            try:
                self._jvm = start_jvm(spark.master, properties, written)
            except ConfigurationError as error:
                written.seek(0)
                lines = written.read().decode(errors="replace").splitlines()
                cause = {"cause": lines[-1]} if lines else {}
                raise ConfigurationError(error.message, **cause) from error
        self._admin = KafkaAdmin(self._jvm, self._access)
        try:
            self._brokers, level = cluster(self._admin)
        except SourceUnavailable as error:
            yield judge_silence(str(error.facts.get("cause", error.message)))
        else:
            yield judge_version(BrokerFacts(self._brokers, level))

    def selection(self) -> Iterator[Finding]:
        """Find the topics that are read, and the table of each."""
        catalogue = TopicCatalogue(self._admin_client)
        pattern = self._settings.kafka.topic_pattern.pattern
        matching = catalogue.matching(pattern)
        self._topics = catalogue.describe(matching, without_leader=matching)
        excluded, refused = {}, {}
        with self._sampler() as sampler:
            for name in matching:
                try:
                    table = table_of(self._settings, name, self._topics.get(name), sampler)
                except UsageError as error:
                    refused[name] = error.message.partition(";")[0]
                    continue
                if self._settings.reads(table):
                    self._tables[name] = table
                else:
                    excluded[name] = "`read: false` under tables"
        self._is_selected = True
        others = [name for name in catalogue.matching(_ANY) if name not in matching]
        targets = {topic: self._settings.target(table) for topic, table in self._tables.items()}
        histories = self._histories()
        yield from judge_selection(
            SelectionFacts(
                pattern,
                {topic: str(table) for topic, table in targets.items()},
                excluded,
                refused,
                others=others,
                shards=self._apart(targets) | self._apart(histories),
                histories={topic: str(table) for topic, table in histories.items()},
            )
        )

    def topics(self) -> Iterator[Finding]:
        """Check the settings of the topics, and what we may do with them."""
        read = self.topic_names
        letters = self._settings.kafka.dead_letter_topic
        schema_topics = self._settings.schema_change_topics.names
        wanted = {*read, *schema_topics, *([letters] if letters else [])}
        catalogue = TopicCatalogue(self._admin_client)
        existing = sorted(wanted & set(catalogue.matching(_ANY)))
        found = {
            name: TopicFacts(
                name, one.partitions, one.replicas, one.leaderless, one.settings, one.operations
            )
            for name, one in topic_descriptions(
                self._admin_client, existing, _TOPIC_SETTINGS
            ).items()
        }
        outage = self._settings.doctor.longest_outage
        yield from judge_topics(
            [found[name] for name in read if name in found], self._brokers, outage
        )
        yield from judge_schema_topics(schema_topics, found)
        if group := self._settings.kafka.group_id:
            yield judge_group(group, self._group_refusal(group))
        if letters:
            yield judge_letter_topic(letters, found.get(letters))

    def records(self) -> Iterator[Finding]:
        """Decode some records of each topic until the time for this is up."""
        facts: list[RecordFacts] = []
        failures: dict[str, Finding] = {}
        left = self.topic_names
        schemas = registry_of(self._settings.schema_registry)
        with self._sampler() as sampler:
            while left and time.monotonic() < self._records_until:
                name = left.pop(0)
                try:
                    batches = sampler.sample(self._topics[name], _FIRST, _NEWEST)
                    facts.append(
                        record_facts(self._settings, schemas, name, self._tables[name], batches)
                    )
                except LakespliceError as error:
                    finding = failure("records", "reading", error)
                    failures.setdefault(finding.seen, finding)
        yield from failures.values()
        yield from judge_records(facts, left)

    @property
    def _admin_client(self) -> KafkaAdmin:
        assert self._admin is not None, "the client is made first"
        return self._admin

    def _group_refusal(self, group: str) -> str:
        try:
            ConsumerGroup(self._admin_client, group).offsets()
        except SourceUnavailable as error:
            return str(error.facts.get("cause", error.message))
        return ""

    def _sampler(self) -> RecordSampler:
        return RecordSampler(self._jvm, self._access)

    @property
    def _access(self) -> BrokerAccess:
        return replace(broker_access(self._settings.kafka), timeout_seconds=self._timeout)

    def _refusal(self, server: str) -> str:
        """Why no connection to a server can be made; empty if it can."""
        host, _, port = server.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), self._timeout):
                return ""
        except TimeoutError:
            return "no answer"
        except OSError as error:
            return (error.strerror or str(error)).lower()

    def _histories(self) -> dict[str, TableName]:
        """The history tables beside the topics' tables of current rows."""
        beside = history_settings(self._settings)
        if beside is None:
            return {}
        mine = self._tables.items()
        return {topic: beside.target(table) for topic, table in mine if beside.has_history(table)}

    def _apart(self, targets: Mapping[str, TableName]) -> frozenset[str]:
        """The tables to which each topic contributes another shard."""
        shards: defaultdict[TableName, list[object]] = defaultdict(list)
        for topic, target in targets.items():
            origin = self._tables[topic]
            shards[target].append(
                shard_of(self._settings.shape(origin), RecordOrigin(topic, origin))
            )
        return frozenset(
            str(target)
            for target, known in shards.items()
            if all(known) and len(set(known)) == len(known)
        )
