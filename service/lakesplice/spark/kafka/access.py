"""How a broker is reached, by Kafka's client and by Spark's source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BrokerAccess:
    """Where a broker is (`host:port`, several separated by commas), options of Kafka's client under
    their own names, and how long to wait for an answer.
    """

    servers: str
    options: Mapping[str, str] = field(repr=False)
    timeout_seconds: float

    @property
    def timeout_ms(self) -> str:
        """The timeout as Kafka's client reads it."""
        return str(int(self.timeout_seconds * 1000))

    def client_settings(self) -> dict[str, str]:
        """Return the settings of a client whose calls end within the timeout, unless the options
        say otherwise.
        """
        return {
            "request.timeout.ms": self.timeout_ms,
            "default.api.timeout.ms": self.timeout_ms,
            **self.options,
            "bootstrap.servers": self.servers,
        }

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's source: it reads what was committed, with headers, which
        dead letters store, and fails if records are gone. It doesn't create a topic that was
        deleted. It waits for records twice as long as for an answer, since a client that looks for
        a partition's leader needs two answers.
        """
        settings = self.client_settings()
        return {
            "kafka.allow.auto.create.topics": "false",
            **{f"kafka.{name}": value for name, value in settings.items()},
            "kafka.isolation.level": "read_committed",
            # A batch that reads a deleted topic waits this long, and all other topics with it.
            "kafkaConsumer.pollTimeoutMs": str(2 * int(settings["request.timeout.ms"])),
            "failOnDataLoss": "true",
            "includeHeaders": "true",
        }
