"""Settings of the topics in which connectors report schema changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from lakesplice.config.sections.section import Section

if TYPE_CHECKING:
    from lakesplice.formats.events.debezium.ddl_types import ConverterSettings


class MaxwellTopic(Section):
    """A topic with a Maxwell's schema changes, and the tables that it describes."""

    name: str = Field(description="The topic: Maxwell's `ddl_kafka_topic`, else its `kafka_topic`.")
    tables: str = Field(
        description="The topics of the tables that this Maxwell describes, as a glob."
    )

    @field_validator("name")
    @classmethod
    def _is_topic(cls, value: str) -> str:
        return _topic(value)


class SchemaChangeTopicSettings(Section):
    """The topics of schema changes, which give types that events don't contain."""

    names: tuple[str, ...] = Field(
        default=(),
        max_length=1_000,
        description="Topics to which Debezium's connectors write schema changes, in JSON. Such"
        " a topic's name is the connector's `topic.prefix`; it describes the tables"
        " whose topics' names begin with it and a dot.",
    )
    decimal_handling_mode: Literal["precise", "string", "double"] = Field(
        default="precise",
        description="The connectors' `decimal.handling.mode`. With `double` digits may be lost"
        " before Lakesplice reads them.",
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
        " TIME are stored as text, as they are sent.",
    )
    bigint_unsigned_handling_mode: Literal["long", "precise"] = Field(
        default="long", description="The connectors' `bigint.unsigned.handling.mode`."
    )

    maxwell: tuple[MaxwellTopic, ...] = Field(
        default=(),
        max_length=1_000,
        description="Topics to which Maxwell writes schema changes (`output_ddl`), each as"
        ' `{name: maxwell_ddl, tables: "maxwell.*"}`: the topic, which is Maxwell\'s'
        " `ddl_kafka_topic`, and the topics of its tables, as a glob. For each"
        " table the first entry that matches applies. Without `ddl_kafka_topic` the"
        " schema changes are in the table's own topic; the whole topic is then read"
        " twice, and from its beginning at each start.",
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
    def handling(self) -> ConverterSettings:
        """How the connectors write values."""
        # The decoder takes a while to import.
        from lakesplice.formats.events.debezium.ddl_types import ConverterSettings

        return ConverterSettings(
            self.decimal_handling_mode,
            self.bigint_unsigned_handling_mode,
            self.time_precision_mode,
            self.decimal_format,
        )


def _topic(name: str) -> str:
    if not 0 < len(name) <= 249 or not all(c.isalnum() or c in "._-" for c in name):
        raise ValueError(f"{name!r} isn't a valid topic name")
    return name
