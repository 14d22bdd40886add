"""Settings of Kafka, where changes come from."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lakesplice.config.options import Options
from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.section import Section

_SERVER = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_OWN_KAFKA_OPTIONS = {
    "bootstrap.servers": "set kafka.bootstrap_servers",
    "group.id": "offsets are kept in the tables; kafka.group_id also shows them to Kafka's tools",
    "enable.auto.commit": "offsets are kept in the tables",
    "auto.offset.reset": "a table starts at its topic's beginning and then at its own offsets",
    "isolation.level": "always read_committed",
    "key.deserializer": "records are read as bytes",
    "value.deserializer": "records are read as bytes",
}


def pattern_of(value: object) -> object:
    """Compile a regular expression; `ValueError` says what is wrong with it."""
    if value == "":
        raise ValueError("an empty pattern matches nothing")
    try:
        return re.compile(value) if isinstance(value, str) else value
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None


Pattern = Annotated[re.Pattern[str], BeforeValidator(pattern_of)]


class KafkaSettings(Section):
    """Where changes come from."""

    bootstrap_servers: str = Field(
        description="Brokers to connect to first: `host:port`, several separated by commas.",
        max_length=10_000,
    )
    topic_pattern: Pattern = Field(
        description="Regular expression for the topics to read; it must match a topic's whole"
        " name. The last two parts of the name, separated by dots, are the table's"
        " database and name. If a name has more than three parts, the topic's first"
        " events show which parts belong to the database and which to the table.",
    )
    starting: Literal["earliest"] = Field(
        default="earliest",
        description="Where in its topic a new table starts. A complete copy needs the beginning.",
    )
    offsets_per_batch_max: int = Field(
        default=200_000,
        ge=1,
        le=100_000_000,
        description="The largest number of records that a batch reads, from all topics together.",
    )
    topic_poll_seconds: Seconds = Field(
        default=30.0,
        ge=0.1,
        le=3_600.0,
        description="How often to look for new topics that match.",
    )
    request_timeout_seconds: Seconds = Field(
        default=30.0,
        ge=1.0,
        le=600.0,
        description="How long to wait for an answer from Kafka before the request counts as"
        " failed. If a topic is deleted while a batch reads it, the batch fails after three times"
        " this time, and the other topics wait as long.",
    )
    dead_letter_topic: str | None = Field(
        default=None,
        pattern=r"[A-Za-z0-9._-]{1,249}",
        description="A topic to which dead letters are sent in addition. They are always stored"
        " in the lake.",
    )
    group_id: str | None = Field(
        default=None,
        pattern=r"[A-Za-z0-9._-]{1,200}",
        description="A consumer group to which the driver writes the offsets that the tables have"
        " committed, so that Kafka's tools and exporters show the lag. Tables start from their own"
        " offsets, never from the group's. If another client sets the group's offsets, as"
        " `kafka-consumer-groups --reset-offsets` does, the tables are read from there, as by"
        " `lakesplice reset`. A group for each lake, that no consumer is a member of.",
    )
    heartbeat_prefix: str = Field(
        default="__debezium-heartbeat",
        pattern=r"[A-Za-z0-9._-]{1,200}",
        description="How the names of the connectors' heartbeat topics begin, as set by"
        " Debezium's `topic.heartbeat.prefix`; a dot and the connector's"
        " `topic.prefix` follow. Heartbeats show whether a connector has stopped or"
        " nothing changes at its source.",
    )
    options: Options = Field(
        default=Options(),
        description="Options of the Kafka client under their own names, such as"
        " `security.protocol` or `sasl.jaas.config`. Secrets among them are masked"
        " wherever settings are printed.",
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _servers(cls, value: str) -> str:
        for server in value.split(","):
            match = _SERVER.fullmatch(server.strip())
            if not match or not 1 <= int(match[2]) <= 65_535:
                raise ValueError("must be host:port, or several separated by commas")
        return ",".join(server.strip() for server in value.split(","))

    @model_validator(mode="after")
    def _letters_apart(self) -> Self:
        if (name := self.dead_letter_topic) and self.topic_pattern.fullmatch(name):
            raise ValueError("dead_letter_topic must not match topic_pattern")
        return self

    @field_validator("options")
    @classmethod
    def _not_ours(cls, value: Options) -> Options:
        for name in value:
            if name.startswith("kafka."):
                raise ValueError(f"write {name} without its `kafka.`")
            if name in _OWN_KAFKA_OPTIONS:
                raise ValueError(f"{name} cannot be set here: {_OWN_KAFKA_OPTIONS[name]}")
        return value
