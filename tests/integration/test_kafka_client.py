"""Kafka's client reports an impossible configuration at once, with the innermost cause. A long
answer arrives whole. A query whose broker doesn't answer can be ended.
"""

from __future__ import annotations

import subprocess
import sys

from lakesplice.spark.session import consumer_properties, session_properties
from tests.support.running import environment

# One process for all cases: the client is Java's, and a session takes seconds to start.
ASKED = """
import socket
import time
from lakesplice.errors import LakespliceError
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.kafka.query import Query, QueryPlan
from lakesplice.spark.kafka.topics import TopicCatalogue
from lakesplice.spark.session import build_session
STOP_TIMEOUT = {"spark.sql.streaming.stopTimeout": "1s"}
session = build_session("local[1]", "512m", ensure_jars(SPARK_KAFKA), STOP_TIMEOUT)
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
for servers, options in (
    ("127.0.0.1:9", {**SASL, "sasl.jaas.config": "no.such.Module required"}),
    ("127.0.0.1:9", {**SASL, "sasl.jaas.config": "no.such.Module required;"}),
    ("127.0.0.1:9", {"security.protocol": "SALS"}),
    ("no-such-name.invalid:9092", {}),
    ("127.0.0.1:9", {}),
):
    started = time.monotonic()
    try:
        access = BrokerAccess(servers, options, 3.0)
        TopicCatalogue(KafkaAdmin.in_session(session, access)).matching(".*")
    except LakespliceError as error:
        print(type(error).__name__, error, time.monotonic() - started < 10, sep=" | ")
admin = KafkaAdmin.in_session(session, BrokerAccess("127.0.0.1:9", {}, 3.0))
for count in (0, 1, 1999, 2000, 2001, 40000):
    answer = session._jvm.java.util.Collections.nCopies(count, "né")
    texts = {admin.ask(lambda client: answer) for _ in range(3)}
    print(count, texts == {"[" + ", ".join(["né"] * count) + "]"})
with socket.create_server(("127.0.0.1", 0)) as silent:
    access = BrokerAccess("127.0.0.1:%d" % silent.getsockname()[1], {}, 600.0)
    query = Query(session, QueryPlan(access, {"shop": {0: 0}}, 10, None), lambda *_: None)
    connection = silent.accept()
    try:
        query.stop()
    except LakespliceError as error:
        print(type(error).__name__, error, sep=" | ", flush=True)
"""


def test_bad_options_are_refused_answers_are_whole_and_a_query_is_left_behind() -> None:
    """Spark ends a query only once Kafka's client has ended its calls, which here takes ten minutes
    and may take for ever. The simulated query of the laws fails to stop as it is told to.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    *lines, not_stopped = done.stdout.splitlines()
    assert len(lines) == 11, done.stderr[-2000:]
    lines, answers = lines[:5], lines[5:]
    assert answers == [f"{count} True" for count in (0, 1, 1999, 2000, 2001, 40000)]
    assert not_stopped.startswith("RetryableError | the query did not stop"), not_stopped
    assert "within 1000 milliseconds" in not_stopped, not_stopped
    expected = (
        ("ConfigurationError", "JAAS"),
        ("ConfigurationError", "no.such.Module"),
        ("ConfigurationError", "SALS"),
        ("SourceUnavailable", "can be resolved"),
        ("SourceUnavailable", "did not answer"),
    )
    for line, (kind, cause) in zip(lines, expected, strict=True):
        assert line.startswith(kind), line
        assert cause.lower() in line.lower(), line
        assert line.endswith("True"), line


def test_a_service_waits_for_a_query_that_does_not_stop_for_some_seconds() -> None:
    assert session_properties("local[1]", "1g", [], {})["spark.sql.streaming.stopTimeout"] == "10s"


def test_consumers_outlive_two_triggers_and_unused_ones_are_looked_for_each_second() -> None:
    """That Spark closes them then takes minutes to see: docs/benchmarks, "A long run"."""
    (timeout,) = consumer_properties(300.0).values()
    assert timeout == "900s"
    found = session_properties("local[1]", "1g", [], consumer_properties(300.0))
    assert found["spark.kafka.consumer.cache.timeout"] == timeout
    assert found["spark.kafka.consumer.cache.evictorThreadRunInterval"] == "1s"
