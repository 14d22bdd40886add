"""The user's choices for a table, with the names that the configuration and manifests use."""

from __future__ import annotations

from enum import StrEnum


class FormatName(StrEnum):
    """The format of a topic's records; docs/formats.md says what each can know."""

    DEBEZIUM = "debezium-json"
    FLATTENED = "debezium-flattened-json"
    AVRO = "debezium-avro"
    FLATTENED_AVRO = "debezium-flattened-avro"
    TICDC_DEBEZIUM = "ticdc-debezium-json"
    MAXWELL = "maxwell-json"
    CANAL = "canal-json"


class TypeMapping(StrEnum):
    """Other types for some columns; docs/types.md says which, and what is lost."""

    BIGINT_UNSIGNED_TO_BIGINT = "bigint-unsigned-to-bigint"
    DECIMAL_TO_DOUBLE = "decimal-to-double"
    TINYINT1_NOT_BOOL = "tinyint1-not-bool"
    TO_STRING = "to-string"


class MissingOffsets(StrEnum):
    """What happens to a table if the broker lost records that it hasn't read: the service stops,
    the table is parked, or it continues without them.
    """

    STOP = "stop"
    PARK = "park"
    CONTINUE = "continue"


class NotInserts(StrEnum):
    """What happens to an update or a delete of an insert-only table."""

    PARK = "park"
    DEAD_LETTER = "dead-letter"
