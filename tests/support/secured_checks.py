"""What the clients of Kafka that the service uses meet under some options: run as a process, since
all of them live in a JVM. Reads cases as JSON from its input, and writes what each came to.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import DataFrame, SparkSession

from lakesplice.errors import LakespliceError
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, OffsetRange
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars
from lakesplice.spark.java_errors import passing_cause
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.kafka.consumer_group import ConsumerGroup
from lakesplice.spark.kafka.dead_letter_topic import DeadLetterTopic
from lakesplice.spark.kafka.first_records import FirstRecordReader
from lakesplice.spark.kafka.query import Query, QueryPlan, TopicOffsets
from lakesplice.spark.kafka.topic_ranges import records_between
from lakesplice.spark.kafka.topics import TopicCatalogue
from lakesplice.spark.session import build_session
from lakesplice.table.files.dead_letters import DeadLetter

_TIMEOUT, _QUERY_SECONDS = 30.0, 60.0
Case = Mapping[str, Any]


class Client:
    """One user's clients."""

    def __init__(self, session: SparkSession, case: Case) -> None:
        self._session, self._case = session, case
        self._access = BrokerAccess(case["servers"], case["options"], _TIMEOUT)
        self._admin = KafkaAdmin.in_session(session, self._access)

    def topics(self) -> dict[str, bool]:
        """The topics that are seen, and whether their records may be read."""
        catalogue = TopicCatalogue(self._admin)
        found = catalogue.describe(catalogue.matching(r"shop\..*"))
        return {name: topic.is_readable for name, topic in found.items()}

    def records(self) -> int:
        """How many records Spark's source reads of a topic."""
        seen: list[int] = []

        def count(frame: DataFrame, _: int, __: TopicOffsets, ___: TopicOffsets) -> None:
            seen.append(frame.count())

        starts = {self._case["topic"]: {0: Offset(0)}}
        plan = QueryPlan(self._access, starts, 1_000, None)
        query = Query(self._session, plan, count)
        try:
            assert query.wait(_QUERY_SECONDS)
        finally:
            query.stop()
        return sum(seen)

    def refusal(self) -> int:
        """What a job meets that Kafka refuses the records of the topic."""
        ranges = {0: OffsetRange(Offset(0), Offset(1))}
        frame = records_between(self._session, self._access, self._case["topic"], ranges)
        try:
            return frame.count()
        except Py4JJavaError as error:
            raise passing_cause(error) or error from error

    def first_records(self) -> int:
        """How many records a topic's format is told from."""
        catalogue = TopicCatalogue(self._admin)
        topic = catalogue.describe([self._case["topic"]])[self._case["topic"]]
        return int(FirstRecordReader(self._session, self._access)(topic).num_rows)

    def group(self) -> list[list[Any]]:
        """The offsets of the group once some were written."""
        group = ConsumerGroup(self._admin, self._case["group"])
        group.offsets()
        group.write({(self._case["topic"], 0): Offset(3)})
        return [[*where, it.offset, it.is_ours] for where, it in group.offsets().items()]

    def letter(self) -> str:
        """A dead letter that is sent."""
        topic = DeadLetterTopic(self._session, self._access, self._case["letters"])
        now, content = EpochMs(0), (b"key", b"value", "not-json", "", "[]")
        letter = DeadLetter("shop.goods", 0, Offset(0), now, *content, now, now, 0)
        try:
            topic.send("shop.goods", [letter])
        finally:
            topic.close()
        return "sent"

    def close(self) -> None:
        """Give the connection back."""
        self._admin.close()


def outcome(step: Callable[[], Any]) -> dict[str, Any]:
    """What a step came to: its value, or its error and how long that took."""
    started = time.monotonic()
    try:
        return {"value": step()}
    except LakespliceError as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"kinds": kinds, "error": str(error), "seconds": time.monotonic() - started}


def main() -> None:
    """Go through the cases."""
    cases = json.load(sys.stdin)
    session = build_session("local[1]", "512m", ensure_jars(SPARK_KAFKA), {})
    told = {}
    for name, case in cases.items():
        client = Client(session, case)
        told[name] = {step: outcome(getattr(client, step)) for step in case["steps"]}
        client.close()
    # Its JVM may be one that others use later.
    session.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
