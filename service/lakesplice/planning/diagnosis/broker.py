"""Judges a broker, and the topics in it that are to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.planning.diagnosis.finding import Area, Finding, counted, first_names, span

_AREA = Area("broker")
_FOREVER = -1
_READ, _WRITE = "READ", "WRITE"
# `metadata.version` by its level, as Kafka's own MetadataVersion has them: the first of a release.
_RELEASES = (
    *((1, "3.0"), (2, "3.1"), (4, "3.2"), (5, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6")),
    *((15, "3.7"), (20, "3.8"), (21, "3.9"), (22, "4.0"), (26, "4.1"), (28, "4.2")),
)


# Parts of the client's message and what to do about each; the first that matches is used.
_SILENCES = (
    ("Authorization", "allow the principal Describe on the cluster and the topics: kafka-acls"),
    (
        "SaslAuthentication",
        "correct user and password in sasl.jaas.config, and sasl.mechanism, of kafka.options",
    ),
    (
        "SslAuthentication",
        "see that the certificates of kafka.options fit the broker's: ssl.truststore.location,"
        " ssl.keystore.location, and the host's name",
    ),
    (
        "Timeout",
        "the port is open, so set security.protocol and sasl.mechanism in kafka.options as the "
        "broker's listener does, and check that its advertised.listeners can be reached",
    ),
)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Whether a connection to a server's port could be made, and what happened if not."""

    server: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A cluster: its brokers that answer, and the level of `metadata.version` if it has one."""

    brokers: int
    metadata_level: int | None = None


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as the broker has it.

    `settings` are its configuration by Kafka's names, empty where we may not ask. `operations` are
    those that we may do with it, None if the broker doesn't say. `leaderless` counts partitions
    that no broker leads, `replicas` the fewest of a partition.
    """

    name: str
    partitions: int
    replicas: int = 1
    leaderless: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    operations: frozenset[str] | None = None


def judge_servers(servers: Sequence[ServerFacts]) -> Finding:
    """Judge whether any server to start from can be reached."""
    failed = [f"{one.server}: {one.error}" for one in servers if one.error]
    if not failed:
        return _AREA.ok("address", f"{first_names(one.server for one in servers)} can be reached")
    seen = "; ".join(failed)
    remedy = "correct host and port in kafka.bootstrap_servers, and see that a broker listens there"
    if len(failed) == len(servers):
        return _AREA.problem("address", seen, remedy)
    return _AREA.warning("address", seen, remedy)


def judge_silence(cause: str) -> Finding:
    """Judge why a broker whose port is open gives Kafka's client no answer, by the cause that the
    client names.
    """
    remedy = "correct what the cause names in kafka.options"
    for sign, todo in _SILENCES:
        if sign.lower() in cause.lower():
            remedy = todo
            break
    return _AREA.problem("version", f"Kafka's client gets no answer: {cause}", remedy)


def judge_version(broker: BrokerFacts) -> Finding:
    """Report which version of Kafka answers. Any version with which Spark's client works is
    fine.
    """
    count = counted(broker.brokers, "broker")
    if broker.metadata_level is None:
        return _AREA.ok("version", f"{count}; the release isn't known (ZooKeeper, or before 3.3)")
    known = [release for level, release in _RELEASES if level <= broker.metadata_level]
    return _AREA.ok("version", f"{count}, Kafka {known[-1] if known else 'before 3.0'} or later")


def judge_topics(
    topics: Sequence[TopicFacts], brokers: int, outage_seconds: float
) -> Iterator[Finding]:
    """Judge topics together: retention, compaction, and what we may do.

    Returns no findings if there are no topics.
    """
    if not topics:
        return
    yield from _judge_rights(topics)
    if seen := [topic for topic in topics if topic.settings]:
        yield _judge_retention(seen, outage_seconds)
        yield _judge_sizes(seen)
        yield _judge_compaction(seen)
    yield _judge_partitions(topics, brokers)


def judge_letter_topic(name: str, topic: TopicFacts | None) -> Finding:
    """Judge the topic that dead letters are also sent to."""
    if topic is None:
        return _AREA.warning(
            "dead letter topic",
            f"the broker has no topic {name}, or we may not see it",
            f"create it: kafka-topics --create --topic {name}, and allow Describe and Write",
        )
    if topic.operations is not None and _WRITE not in topic.operations:
        return _AREA.problem("dead letter topic", f"we may not write to {name}", _allow(_WRITE))
    return _AREA.ok("dead letter topic", f"{name} is there")


def judge_group(name: str, refusal: str) -> Finding:
    """Judge the group to which offsets are written; `refusal` says why we may not see it, if so."""
    if refusal:
        return _AREA.problem(
            "consumer group",
            f"we may not see {name}: {refusal}",
            f"kafka-acls --add --allow-principal User:… --operation Read --group {name}",
        )
    return _AREA.ok("consumer group", f"{name} may be seen")


def judge_schema_topics(names: Sequence[str], found: Mapping[str, TopicFacts]) -> Iterator[Finding]:
    """Judge the topics of schema changes: they must exist and keep all their records."""
    if missing := [name for name in names if name not in found]:
        yield _AREA.problem(
            "schema changes",
            f"the broker has no topic {first_names(missing)}, or we may not see it",
            "correct schema_change_topics.names: such a topic's name is the connector's"
            " topic.prefix",
        )
    there = [found[name] for name in names if name in found]
    if hidden := [topic.name for topic in there if not topic.settings]:
        yield _AREA.unknown(
            "schema changes",
            f"we may not see the settings of {first_names(hidden)}",
            f"to have them checked: {_allow('DescribeConfigs')}",
        )
    lossy = [topic.name for topic in there if topic.settings and not _keeps_all(topic)]
    if lossy:
        yield _AREA.warning(
            "schema changes",
            f"{first_names(lossy)} doesn't keep its records for ever",
            "set retention.ms=-1 and cleanup.policy=delete: types are read from its beginning",
        )
    elif there and not missing and not hidden:
        yield _AREA.ok("schema changes", f"{first_names(names)}: there, and kept for ever")


def _judge_rights(topics: Sequence[TopicFacts]) -> Iterator[Finding]:
    answered = [topic for topic in topics if topic.operations is not None]
    refused = [topic.name for topic in answered if _READ not in (topic.operations or ())]
    if refused:
        yield _AREA.problem("rights", f"we may not read {first_names(refused)}", _allow(_READ))
    elif answered:
        yield _AREA.ok("rights", f"{counted(len(answered), 'topic')} may be read")
    silent = [topic.name for topic in topics if not topic.settings]
    if silent:
        yield _AREA.unknown(
            "topic settings",
            f"we may not see those of {first_names(silent)}",
            f"to have retention and compaction checked: {_allow('DescribeConfigs')}",
        )


def _allow(operation: str) -> str:
    named_so = operation.capitalize() if operation.isupper() else operation
    return f"kafka-acls --add --allow-principal User:… --operation {named_so} --topic …"


def _judge_retention(topics: Sequence[TopicFacts], outage_seconds: float) -> Finding:
    longest = f"doctor.longest_outage is {span(outage_seconds)}"
    short: dict[str, float] = {}
    for topic in topics:
        kept = _number(topic, "retention.ms")
        if (
            kept is not None
            and kept != _FOREVER
            and kept / 1000 < outage_seconds
            and _expires(topic)
        ):
            short[topic.name] = kept / 1000
    if short:
        return _AREA.problem(
            "retention",
            f"{first_names(short)}: records are deleted after {span(min(short.values()))}, and"
            f" {longest}",
            "raise retention.ms of the topics: a table whose unread records are deleted is parked",
        )
    known = [_number(topic, "retention.ms") for topic in topics if _expires(topic)]
    times = [kept / 1000 for kept in known if kept is not None and kept != _FOREVER]
    shortest = f"at least {span(min(times))}" if times else "for ever"
    return _AREA.ok("retention", f"records stay {shortest}; {longest}")


def _judge_sizes(topics: Sequence[TopicFacts]) -> Finding:
    bounded = [
        topic.name for topic in topics if (_number(topic, "retention.bytes") or _FOREVER) > 0
    ]
    if not bounded:
        return _AREA.ok("retention by size", "none")
    return _AREA.warning(
        "retention by size",
        f"{first_names(bounded)}: retention.bytes deletes records however new they are",
        "see that it exceeds what a partition gets in the longest outage, or set it to -1",
    )


def _judge_compaction(topics: Sequence[TopicFacts]) -> Finding:
    compacted = [topic.name for topic in topics if _is_compacted(topic)]
    if not compacted:
        return _AREA.ok("compaction", "no topic is compacted")
    return _AREA.problem(
        "compaction",
        f"{first_names(compacted)}: cleanup.policy=compact removes changes, deletes among them",
        "set cleanup.policy=delete: a row whose delete is removed before it is read stays",
    )


def _judge_partitions(topics: Sequence[TopicFacts], brokers: int) -> Finding:
    total = sum(topic.partitions for topic in topics)
    seen = f"{counted(total, 'partition')} in {counted(len(topics), 'topic')}"
    if dark := [topic.name for topic in topics if topic.leaderless]:
        return _AREA.problem(
            "partitions",
            f"{first_names(dark)}: no broker leads a partition",
            "start the missing brokers",
        )
    if single := [topic.name for topic in topics if brokers > 1 and topic.replicas < 2]:
        return _AREA.warning(
            "partitions",
            f"{seen}; {first_names(single)} on one broker of {brokers}",
            "give the topics a replication factor of 2 or more: a lost broker loses changes",
        )
    return _AREA.ok("partitions", seen)


def _keeps_all(topic: TopicFacts) -> bool:
    return not _is_compacted(topic) and _number(topic, "retention.ms") == _FOREVER


def _is_compacted(topic: TopicFacts) -> bool:
    return "compact" in topic.settings.get("cleanup.policy", "")


def _expires(topic: TopicFacts) -> bool:
    return "delete" in topic.settings.get("cleanup.policy", "")


def _number(topic: TopicFacts, name: str) -> int | None:
    text = topic.settings.get(name, "")
    return int(text) if text.lstrip("-").isdecimal() else None
