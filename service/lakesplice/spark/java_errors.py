"""What errors of the JVM say: their causes, of which the innermost says most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException

from lakesplice.errors import RetryableError, SourceUnavailable

JOB_ERRORS = (PySparkException, Py4JJavaError)
"""What the result of a DataFrame raises if its job fails: an error of PySpark's own if PySpark
knows the one in Java, and else py4j's, as for those of Kafka's client.
"""
_KAFKA = "org.apache.kafka."
# Spark's own error if the broker gives no record in time. It names no topic.
_NO_RECORD = "java.util.concurrent.TimeoutException: Cannot fetch record for offset "
_NO_RIGHT = "AuthorizationException"
_CAUSE = "Caused by: "
_DISK_FULL = "No space left on device"


def passing_cause(error: Py4JJavaError) -> RetryableError | None:
    """Return the error for a job that ended for a reason which may pass and which is no table's:
    Kafka's client couldn't read the records of a topic, which its words name if it is one topic's,
    or the disk for Spark's temporary files is full. None if it ended for another reason.

    The cause has all of Kafka's errors: the innermost says why, and sometimes only an outer one
    which topic.
    """
    thrown = [_first_line(one) for one in _thrown(error)]
    said = [line for line in thrown if line.startswith((_KAFKA, _NO_RECORD))]
    if said:
        return SourceUnavailable(
            "Kafka doesn't give the records; correct what the cause names",
            cause="; ".join(dict.fromkeys(said)),
        )
    if any(_DISK_FULL in line for line in thrown):
        return RetryableError("the disk for Spark's temporary files is full; free some space")
    return None


def outermost(error: PySparkException | Py4JJavaError) -> str:
    """Return the first line of what was raised, without its causes."""
    if isinstance(error, Py4JJavaError):
        return _first_line(error.java_exception)
    return str(error).splitlines()[0]


def innermost(error: Py4JJavaError) -> str:
    """Return the first line of the innermost cause."""
    *_, last = _thrown(error)
    return _first_line(last)


def innermost_line(text: str) -> str:
    """Return the same of the text of an error of PySpark's; its first line if no cause is in it."""
    causes = [line for line in text.splitlines() if line.startswith(_CAUSE)]
    return causes[-1].removeprefix(_CAUSE) if causes else text.splitlines()[0]


def lacks_right(error: Py4JJavaError) -> bool:
    """Whether Kafka refused because an ACL is missing."""
    return any(kind.endswith(_NO_RIGHT) for kind in kinds_of(error))


def kinds_of(error: Py4JJavaError) -> list[str]:
    """Return the names of the Java classes of an error and its causes."""
    return [_name(thrown) for thrown in _thrown(error)]


def _thrown(error: Py4JJavaError) -> Iterator[Any]:
    """An error of Java's and its causes, the innermost last."""
    thrown = error.java_exception
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()


def _name(thrown: Any) -> str:
    return str(thrown.getClass().getName())


def _first_line(thrown: Any) -> str:
    return str(thrown.toString()).splitlines()[0]
