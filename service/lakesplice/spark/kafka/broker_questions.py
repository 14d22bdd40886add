"""Further questions to the broker, for `lakesplice doctor`: its release, the settings of topics,
and our permissions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.errors import SourceUnavailable
from lakesplice.spark.kafka.admin import KafkaAdmin, java_list
from lakesplice.spark.kafka.topics import LEADERLESS, TOPIC_DESCRIPTION, operations_in

_NODE = re.compile(r"\(id: -?\d+ ")
_LEVEL = re.compile(r"metadata\.version -> FinalizedVersionRange\[.*?max_version_level:(\d+)\]")
_PARTITION = re.compile(r"\(partition=\d+, leader=(.*?), replicas=(.*?), isr=")
_CONFIG = re.compile(r"ConfigResource\(type=TOPIC, name='([^']+)'\)=Config\(entries=\[(.*?)\]\)")
_ENTRY = re.compile(r"ConfigEntry\(name=([\w.]+), value=(.*?), source=")


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic: its partitions, how many of them have no leader, the fewest replicas of one, our
    permissions (None if the broker doesn't report them), and some of its settings.
    """

    name: str
    partitions: int
    leaderless: int
    replicas: int
    operations: frozenset[str] | None
    settings: Mapping[str, str] = field(default_factory=dict)


def cluster(admin: KafkaAdmin) -> tuple[int, int | None]:
    """Return the number of brokers and the level of `metadata.version`, None if there is none.
    Blocks; errors as `KafkaAdmin.ask`.
    """
    nodes = admin.ask(lambda client: client.describeCluster().nodes().get())
    try:
        features = admin.ask(lambda client: client.describeFeatures().featureMetadata().get())
    except SourceUnavailable:  # brokers before 2.7 have no features
        features = ""
    level = _LEVEL.search(features)
    return len(_NODE.findall(nodes)), int(level[1]) if level else None


def topic_descriptions(
    admin: KafkaAdmin, names: Sequence[str], settings: Sequence[str]
) -> dict[str, TopicDescription]:
    """Return descriptions of those of the topics that exist, with the settings of these names;
    empty settings if we may not see them. Blocks; errors as `KafkaAdmin.ask`.
    """
    if not names:
        return {}
    described = admin.jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions()
    options = described.includeAuthorizedOperations(True)
    request = java_list(admin.jvm, names)
    answer = admin.ask(lambda client: client.describeTopics(request, options).allTopicNames().get())
    kept = _settings(admin, names, frozenset(settings))
    found = {}
    for name, partitions, operations in TOPIC_DESCRIPTION.findall(answer):
        parts = _PARTITION.findall(partitions)
        found[name] = TopicDescription(
            name,
            len(parts),
            sum(leader.startswith(LEADERLESS) for leader, _ in parts),
            min((len(_NODE.findall(replicas)) for _, replicas in parts), default=0),
            operations_in(operations),
            kept.get(name, {}),
        )
    return found


def _settings(
    admin: KafkaAdmin, names: Sequence[str], wanted: frozenset[str]
) -> dict[str, dict[str, str]]:
    resource = admin.jvm.org.apache.kafka.common.config.ConfigResource
    kind = resource.Type.valueOf("TOPIC")
    request = java_list(admin.jvm, (resource(kind, name) for name in names))
    try:
        answer = admin.ask(lambda client: client.describeConfigs(request).all().get())
    except SourceUnavailable:  # one topic that refuses fails all; the caller says so
        return {}
    return {
        name: {key: value for key, value in _ENTRY.findall(entries) if key in wanted}
        for name, entries in _CONFIG.findall(answer)
    }
