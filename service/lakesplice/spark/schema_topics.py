"""Reading a topic of schema changes, with the client and the options that all else is read with."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakesplice.errors import SourceUnavailable


class SchemaTopicReader:
    """Reads ranges of partition 0, in which Debezium writes all of such a topic. Blocks."""

    def __init__(
        self, session: SparkSession, bootstrap_servers: str, options: Mapping[str, str]
    ) -> None:
        self._session = session
        self._servers = bootstrap_servers
        self._options = options

    def __call__(self, topic: str, start: int, end: int) -> list[tuple[int, bytes | None]]:
        """Return the records' offsets and values from `start` on and before `end`, in order.

        `SourceUnavailable` if the broker doesn't give them.
        """
        reader = self._session.read.format("kafka")
        options = {
            **{f"kafka.{name}": value for name, value in self._options.items()},
            "kafka.bootstrap.servers": self._servers,
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({topic: [0]}),
            "startingOffsets": json.dumps({topic: {"0": start}}),
            "endingOffsets": json.dumps({topic: {"0": end}}),
            "failOnDataLoss": "true",
        }
        for name, value in options.items():
            reader = reader.option(name, value)
        try:
            rows = reader.load().select("offset", "value").collect()
        except PySparkException as error:
            raise SourceUnavailable(
                "a topic of schema changes can't be read; check that it keeps all its records",
                topic=topic,
                cause=str(error).splitlines()[0],
            ) from error
        return sorted((row[0], None if row[1] is None else bytes(row[1])) for row in rows)
