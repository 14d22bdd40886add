"""The settings of the topics in which connectors tell of schema changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from lakesplice.config.section import Section

if TYPE_CHECKING:
    from lakesplice.formats.events.debezium.native import Handling


class SchemaChangeTopicSettings(Section):
    """Where types are from that events don't say: Debezium's topics of schema changes."""

    names: tuple[str, ...] = Field(
        default=(),
        max_length=1_000,
        description="Topics in which Debezium's connectors tell of schema changes, in JSON; such a"
        " topic's name is the connector's `topic.prefix`, and it is for the tables whose topics'"
        " names begin with it and a dot.",
    )
    decimal_handling_mode: Literal["precise", "string"] = Field(
        default="precise", description="The connectors' `decimal.handling.mode`."
    )
    bigint_unsigned_handling_mode: Literal["long", "precise"] = Field(
        default="long", description="The connectors' `bigint.unsigned.handling.mode`."
    )

    @field_validator("names")
    @classmethod
    def _are_topics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not 0 < len(name) <= 249 or not all(c.isalnum() or c in "._-" for c in name):
                raise ValueError(f"{name!r} is no topic's name")
        if len(set(value)) != len(value):
            raise ValueError("a topic is named twice")
        return value

    @property
    def handling(self) -> Handling:
        """How the connectors write values."""
        # The decoder takes a while to import.
        from lakesplice.formats.events.debezium.native import Handling

        return Handling(self.decimal_handling_mode, self.bigint_unsigned_handling_mode)
