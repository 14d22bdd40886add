"""The settings of the topics in which connectors tell of schema changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from lakesplice.config.sections.section import Section

if TYPE_CHECKING:
    from lakesplice.formats.events.debezium.native import Handling


class MaxwellTopic(Section):
    """A topic in which a Maxwell tells of schema changes, and the tables that it is for."""

    name: str = Field(description="The topic: Maxwell's `ddl_kafka_topic`, else its `kafka_topic`.")
    tables: str = Field(
        description="The topics of the tables that this Maxwell tells of, as a glob."
    )

    @field_validator("name")
    @classmethod
    def _is_topic(cls, value: str) -> str:
        return _topic(value)


class SchemaChangeTopicSettings(Section):
    """Where types are from that events don't say: topics that tell of schema changes."""

    names: tuple[str, ...] = Field(
        default=(),
        max_length=1_000,
        description="Topics in which Debezium's connectors tell of schema changes, in JSON; such a"
        " topic's name is the connector's `topic.prefix`, and it is for the tables whose topics'"
        " names begin with it and a dot.",
    )
    decimal_handling_mode: Literal["precise", "string", "double"] = Field(
        default="precise",
        description="The connectors' `decimal.handling.mode`. `double` has lost digits before they"
        " are read.",
    )
    decimal_format: Literal["base64", "numeric"] = Field(
        default="base64", description="The JSON converter's `decimal.format`, in small letters."
    )
    time_precision_mode: Literal[
        "adaptive_time_microseconds",
        "adaptive",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
    ] = Field(
        default="adaptive_time_microseconds",
        description="The connectors' `time.precision.mode`. With `isostring` DATE, DATETIME and"
        " TIME are stored as the texts that are sent.",
    )
    bigint_unsigned_handling_mode: Literal["long", "precise"] = Field(
        default="long", description="The connectors' `bigint.unsigned.handling.mode`."
    )

    maxwell: tuple[MaxwellTopic, ...] = Field(
        default=(),
        max_length=1_000,
        description="Topics in which Maxwell tells of schema changes (`output_ddl`), each as"
        ' `{name: maxwell_ddl, tables: "maxwell.*"}`: the topic, which is its `ddl_kafka_topic`,'
        " and those of its tables, as a glob; the first that matches counts. Without a"
        " `ddl_kafka_topic` it is the table's own topic: then all that is in it is read twice, and"
        " from its beginning at each start.",
    )

    @field_validator("names")
    @classmethod
    def _are_topics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            _topic(name)
        return value

    @model_validator(mode="after")
    def _are_of_one(self) -> Self:
        names = [*self.names, *(topic.name for topic in self.maxwell)]
        if len(set(names)) != len(names):
            raise ValueError("a topic is named twice")
        return self

    @property
    def handling(self) -> Handling:
        """How the connectors write values."""
        # The decoder takes a while to import.
        from lakesplice.formats.events.debezium.native import Handling

        return Handling(
            self.decimal_handling_mode,
            self.bigint_unsigned_handling_mode,
            self.time_precision_mode,
            self.decimal_format,
        )


def _topic(name: str) -> str:
    if not 0 < len(name) <= 249 or not all(c.isalnum() or c in "._-" for c in name):
        raise ValueError(f"{name!r} isn't a valid topic name")
    return name
