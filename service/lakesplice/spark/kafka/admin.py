"""Asks a broker, through the Kafka client that Spark's source itself uses.

One client library means one set of options: `kafka.options` for TLS and SASL apply to reading
records and to questions alike.

Each access to a Java object from Python is a round trip. Hundreds of topics would need thousands of
them, seconds in all, so an answer is transferred as Java's text of the whole object, in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import SparkSession

from lakesplice.errors import ConfigurationError, CredentialsRefused, SourceUnavailable
from lakesplice.spark.java_errors import innermost, kinds_of, lacks_right
from lakesplice.spark.kafka.access import BrokerAccess

# How the names of Kafka's errors end.
_NOT_BELIEVED = ("AuthenticationException", "UnsupportedSaslMechanismException")
_UNRESOLVED = "No resolvable bootstrap urls"
# The JVM sends what py4j answers in blocks of 8 KiB. It sends a second block when the first is
# acknowledged, and for that the system of this side waits 40 ms.
_CHARACTERS_AT_ONCE = 8000


class KafkaAdmin:
    """Kafka's administrative client in a JVM. Every call blocks for at most the timeout; safe from
    several threads.
    """

    def __init__(self, jvm: Any, access: BrokerAccess) -> None:
        """`jvm` is py4j's view of the JVM; nothing is asked yet."""
        self.jvm = jvm
        self._servers = access.servers
        self._properties = java_properties(jvm, access.client_settings())
        self._text = jvm.java.lang.StringBuilder
        self._wait = jvm.java.time.Duration.ofMillis(int(access.timeout_ms))
        self._client: Any = None

    @classmethod
    def in_session(cls, session: SparkSession, access: BrokerAccess) -> Self:
        """Return a client in the JVM of a session, for which Spark has no public interface."""
        return cls(session._jvm, access)

    def ask(self, question: Callable[[Any], Any], right: str = "") -> str:
        """Return the text of the answer. Raises `SourceUnavailable` if the broker doesn't answer or
        refuses, `CredentialsRefused` if it refuses our credentials, and `ConfigurationError` for
        impossible options. `right` is what the user needs to ask this.
        """
        if self._client is None:
            self._client = self._made()
        try:
            return self._text_of(question(self._client))
        except Py4JJavaError as error:
            raise self._refused(error, right) from error

    def close(self) -> None:
        """Close the connection; the next question opens a new one."""
        if self._client is not None:
            # Without a bound it may wait for ever for the answer of a broker that went away.
            self._client.close(self._wait)
            self._client = None

    def _text_of(self, answer: Any) -> str:
        """Return what `toString` of a Java object returns."""
        text = self._text().append(answer)
        length = int(text.length())
        starts = range(0, length, _CHARACTERS_AT_ONCE)
        return "".join(text.substring(at, min(length, at + _CHARACTERS_AT_ONCE)) for at in starts)

    def _refused(self, error: Py4JJavaError, right: str) -> SourceUnavailable:
        kinds, cause = kinds_of(error), innermost(error)
        if any(kind.endswith(_NOT_BELIEVED) for kind in kinds):
            return CredentialsRefused(
                "Kafka refuses the connection; correct the credentials or certificates in"
                " kafka.options",
                bootstrap_servers=self._servers,
                cause=cause,
            )
        if lacks_right(error):
            missing = {"right": right} if right else {}
            return SourceUnavailable(
                "the user of Kafka lacks a right; give it the ACL (docs/kafka-security.md)",
                **missing,
                cause=cause,
            )
        return SourceUnavailable(
            "Kafka did not answer; check kafka.bootstrap_servers and kafka.options",
            bootstrap_servers=self._servers,
            cause=cause,
        )

    def _made(self) -> Any:
        """Return a client. It contacts no server yet, so an error here is about its settings."""
        admin = self.jvm.org.apache.kafka.clients.admin.AdminClient
        try:
            return admin.create(self._properties)
        except Py4JJavaError as error:
            cause = innermost(error)
            if _UNRESOLVED in cause:  # names may be there in a moment
                raise SourceUnavailable(
                    "no name in kafka.bootstrap_servers can be resolved; check them and the DNS",
                    bootstrap_servers=self._servers,
                ) from error
            raise ConfigurationError(
                "Kafka's client can't be made from kafka.options; correct what the cause names",
                cause=cause,
            ) from error


def java_properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    """Return settings as Java's `Properties`."""
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.put(name, value)
    return properties


def java_list(jvm: Any, items: Iterable[Any]) -> Any:
    """Return items as a Java list."""
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return made


def misread(question: str, answer: str) -> SourceUnavailable:
    """Return the error for an answer that doesn't have the expected form."""
    return SourceUnavailable(
        "Kafka's client answered in another form than expected; use the jars that were pinned",
        question=question,
        answer=answer[:200],
    )
