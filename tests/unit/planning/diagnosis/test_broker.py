"""Findings about a broker and its topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

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
from lakesplice.planning.diagnosis.finding import Finding, Verdict

DAY = 86_400
OUTAGE = 3.0 * DAY
SETTINGS = {
    "retention.ms": str(7 * DAY * 1000),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
}
ALL = frozenset(("READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"))


def topic(
    name: str = "shop.shop.orders", settings: Mapping[str, str] | None = None, **more: Any
) -> TopicFacts:
    facts: dict[str, Any] = {"partitions": 3, "replicas": 3, "operations": ALL, **more}
    return TopicFacts(name, settings={**SETTINGS, **(settings or {})}, **facts)


def judged(*topics: TopicFacts, brokers: int = 3) -> dict[str, Finding]:
    return {one.check: one for one in judge_topics(topics, brokers, OUTAGE)}


def test_a_server_that_answers_is_enough_but_each_other_is_named() -> None:
    up, down = ServerFacts("a:9092"), ServerFacts("b:9092", "connection refused")
    assert judge_servers([up]).verdict is Verdict.OK
    assert judge_servers([up, down]).verdict is Verdict.WARNING
    alone = judge_servers([down])
    assert alone.verdict is Verdict.PROBLEM
    assert alone.seen == "b:9092: connection refused"
    assert "kafka.bootstrap_servers" in alone.remedy


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("TimeoutException: Timed out waiting for a node assignment", "security.protocol"),
        ("SaslAuthenticationException: Authentication failed", "sasl.jaas.config"),
        ("SslAuthenticationException: SSL handshake failed", "ssl.truststore.location"),
        ("ClusterAuthorizationException: Cluster authorization failed.", "kafka-acls"),
        ("DisconnectException", "what the cause names"),
    ],
)
def test_an_error_that_the_client_names_says_what_to_correct(cause: str, remedy: str) -> None:
    found = judge_silence(f"org.apache.kafka.common.errors.{cause}")
    assert found.verdict is Verdict.PROBLEM
    assert remedy in found.remedy
    assert cause in found.seen


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (27, "Kafka 4.1"),
        (25, "Kafka 4.0"),
        (21, "Kafka 3.9"),
        (0, "before 3.0"),
        (None, "isn't known"),
    ],
)
def test_the_metadata_version_shows_the_release(level: int | None, said: str) -> None:
    found = judge_version(BrokerFacts(1, level))
    assert found.verdict is Verdict.OK
    assert said in found.seen
    assert "1 broker" in found.seen


def test_no_topics_have_no_findings() -> None:
    assert not judged()


def test_topics_as_they_should_be_are_right() -> None:
    found = judged(topic(), topic("shop.shop.carts"))
    assert {one.verdict for one in found.values()} == {Verdict.OK}
    assert found["partitions"].seen == "6 partitions in 2 topics"
    assert "at least 7 days" in found["retention"].seen


@pytest.mark.parametrize(
    ("settings", "check", "verdict"),
    [
        ({"retention.ms": str(DAY * 1000)}, "retention", Verdict.PROBLEM),
        ({"retention.ms": "-1"}, "retention", Verdict.OK),
        ({"retention.ms": "3600000", "cleanup.policy": "compact"}, "retention", Verdict.OK),
        ({"retention.bytes": "1073741824"}, "retention by size", Verdict.WARNING),
        ({"cleanup.policy": "compact"}, "compaction", Verdict.PROBLEM),
        ({"cleanup.policy": "compact,delete"}, "compaction", Verdict.PROBLEM),
    ],
)
def test_records_have_to_stay_longer_than_the_longest_outage(
    settings: dict[str, str], check: str, verdict: Verdict
) -> None:
    found = judged(topic(), topic("shop.shop.carts", settings))[check]
    assert found.verdict is verdict
    if verdict is not Verdict.OK:
        assert "shop.shop.carts" in found.seen
        assert "shop.shop.orders" not in found.seen


def test_the_shortest_retention_is_reported() -> None:
    short, shorter = ({"retention.ms": str(h * 3_600_000)} for h in (5, 2))
    found = judged(topic("a.b.c", short), topic("a.b.d", shorter))["retention"]
    assert found.seen.startswith("a.b.c, a.b.d: records are deleted after 2 hours")


def test_rights_that_lack_are_named_with_the_command_that_gives_them() -> None:
    found = judged(topic(), topic("shop.shop.carts", operations=frozenset(("DESCRIBE",))))
    assert found["rights"].verdict is Verdict.PROBLEM
    assert found["rights"].seen == "we may not read shop.shop.carts"
    assert "--operation Read" in found["rights"].remedy
    assert "rights" not in judged(topic(operations=None)), "a broker that doesn't say it"


def test_settings_that_we_may_not_see_are_not_checked() -> None:
    silent = TopicFacts("shop.shop.orders", 1, operations=ALL)
    found = judged(silent, brokers=1)
    assert found["topic settings"].verdict is Verdict.UNKNOWN
    assert "DescribeConfigs" in found["topic settings"].remedy
    assert "retention" not in found
    assert "compaction" not in found


def test_partitions_need_leaders_and_replicas() -> None:
    assert judged(topic(leaderless=1))["partitions"].verdict is Verdict.PROBLEM
    assert judged(topic(replicas=1))["partitions"].verdict is Verdict.WARNING
    assert judged(topic(replicas=1), brokers=1)["partitions"].verdict is Verdict.OK


def test_the_topic_of_dead_letters_has_to_be_there_and_ours_to_write() -> None:
    assert judge_letter_topic("dead", topic("dead")).verdict is Verdict.OK
    assert judge_letter_topic("dead", topic("dead", operations=None)).verdict is Verdict.OK
    assert judge_letter_topic("dead", None).verdict is Verdict.WARNING
    closed = judge_letter_topic("dead", topic("dead", operations=frozenset(("READ",))))
    assert closed.verdict is Verdict.PROBLEM
    assert "--operation Write" in closed.remedy


def test_topics_of_schema_changes_are_kept_for_ever() -> None:
    kept = topic("server", {"retention.ms": "-1"})

    def verdicts(*names: str, **found: TopicFacts) -> list[Verdict]:
        return [one.verdict for one in judge_schema_topics(names, found)]

    assert verdicts() == []
    assert verdicts("server", server=kept) == [Verdict.OK]
    assert verdicts("server") == [Verdict.PROBLEM]
    assert verdicts("server", server=topic("server")) == [Verdict.WARNING]
    compacted = topic("server", {"retention.ms": "-1", "cleanup.policy": "compact"})
    assert verdicts("server", server=compacted) == [Verdict.WARNING]
    unseen = TopicFacts("server", 1)
    assert verdicts("server", server=unseen) == [Verdict.UNKNOWN], "its settings aren't shown to us"


def test_a_group_that_may_not_be_seen_is_a_problem_with_the_command_that_allows_it() -> None:
    assert judge_group("lake", "").verdict is Verdict.OK
    refused = judge_group("lake", "Not authorized to access group: lake")
    assert refused.verdict is Verdict.PROBLEM
    assert "--operation Read --group lake" in refused.remedy
