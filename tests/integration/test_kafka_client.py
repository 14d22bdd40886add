"""Kafka's client reports an impossible configuration at once, with the innermost cause."""

from __future__ import annotations

import subprocess
import sys

from tests.support.running import environment

# One process for all cases: the client is Java's, and a session takes seconds to start.
ASKED = """
import time
from lakesplice.errors import LakespliceError
from lakesplice.spark.jars import SPARK_KAFKA, ensure_jars
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import KafkaAdmin
from lakesplice.spark.session import build_session
from lakesplice.spark.kafka.topics import TopicCatalogue
session = build_session("local[1]", "512m", ensure_jars(SPARK_KAFKA), {})
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
"""


def test_options_that_cannot_work_are_refused_at_once_with_the_inner_cause() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stderr[-2000:]
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
