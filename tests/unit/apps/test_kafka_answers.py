"""What Kafka's client says, in Java's words: which topic an error is about, and which partitions
have no leader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from lakesplice.errors import SourceUnavailable
from lakesplice.spark.java_errors import passing_cause
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.record_samples import RecordSampler
from lakesplice.spark.kafka.topics import TopicCatalogue

_SPARK = "org.apache.spark.SparkException: Job aborted due to stage failure"
_KAFKA = "org.apache.kafka.common."


class Thrown:
    """An exception of Java's, by the text of itself and of its causes, as py4j shows one."""

    def __init__(self, *texts: str) -> None:
        self._text, self._causes = texts[0], texts[1:]
        self._target_id = ""

    def getCause(self) -> Thrown | None:  # noqa: N802  # Java's name
        return Thrown(*self._causes) if self._causes else None

    def toString(self) -> str:  # noqa: N802  # Java's name
        return self._text


def cause_of(*texts: str) -> str | None:
    """What passing trouble an exception shows."""
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = Thrown(*texts)
    found = passing_cause(error)
    return None if found is None else str(found)


def test_an_error_of_kafkas_client_names_the_topic_that_only_an_outer_one_names() -> None:
    found = cause_of(
        _SPARK,
        f"{_KAFKA}KafkaException: Received exception when fetching the next record from shop.a-0.",
        f"{_KAFKA}errors.CorruptRecordException: Record is corrupt",
    )
    assert found is not None
    assert "shop.a-0" in found
    assert "Record is corrupt" in found


def test_a_record_that_does_not_come_in_time_is_no_tables_fault() -> None:
    """Spark says so in an error of its own, without a topic."""
    found = cause_of(
        _SPARK,
        "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 30000"
        " milliseconds",
    )
    assert found is not None
    assert "offset 7" in found
    assert cause_of(_SPARK, "java.util.concurrent.TimeoutException: Futures timed out") is None


class AnyJava:
    """Takes every call, as objects of Java's that a question is made of."""

    def __getattr__(self, _name: str) -> AnyJava:
        return self

    def __call__(self, *_arguments: object) -> AnyJava:
        return self


class Answers:
    """Kafka's client with these answers, one after the other."""

    def __init__(self, *texts: str) -> None:
        self.jvm = AnyJava()
        self.texts = list(texts)

    def ask(self, _question: Callable[[Any], Any]) -> str:
        return self.texts.pop(0)


_LISTED = "[(name=a, topicId=A, internal=false), (name=b, topicId=B, internal=false)]"
_NODE, _GONE = "127.0.0.1:9092 (id: 1 rack: null)", ":-1 (id: 2 rack: null)"
_REPLICAS = f"replicas={_NODE}, isr={_NODE}, elr=, lastKnownElr="
_LOST = f"replicas={_GONE}, isr=, elr={_GONE}, lastKnownElr={_GONE}"
_DESCRIBED = (
    "{a=(name=a, internal=false, partitions="
    f"(partition=0, leader={_NODE}, {_REPLICAS}), authorizedOperations=[READ]),"
    " b=(name=b, internal=false, partitions="
    f"(partition=0, leader={_NODE}, {_REPLICAS}),(partition=1, leader=null, {_LOST}),"
    " authorizedOperations=[READ])}"
)
_OFFSETS = "{{a-0=ListOffsetsResultInfo(offset={}, timestamp=-1, leaderEpoch=Optional[0])}}"


def test_a_topic_without_a_leader_leaves_the_offsets_of_others_known() -> None:
    texts = _LISTED, _DESCRIBED, _OFFSETS.format(2), _OFFSETS.format(5)
    admin: Any = Answers(*texts)
    found = TopicCatalogue(admin).describe(["a", "b"], without_leader=["a", "b"])
    assert (found["a"].earliest, found["a"].latest, found["a"].leaderless) == ({0: 2}, {0: 5}, ())
    assert (found["b"].earliest, found["b"].latest, found["b"].leaderless) == ({}, {}, (1,))
    admin = Answers(*texts)
    refused = r"no leader.*topic='b' partitions=\(1,\)"
    with pytest.raises(SourceUnavailable, match=refused):
        TopicCatalogue(admin).describe(["a", "b"])
    sampler = RecordSampler(AnyJava(), BrokerAccess("127.0.0.1:1", {}, 1.0))
    with pytest.raises(SourceUnavailable, match=refused):
        sampler.sample(found["b"], 1, 1)


def test_nothing_is_asked_about_no_topics() -> None:
    admin: Any = Answers()
    assert TopicCatalogue(admin).describe([]) == {}
