"""The formats of change events, by the names under which they are set and recorded."""

from __future__ import annotations

from enum import StrEnum


class FormatName(StrEnum):
    """What a topic's records are written in; docs/formats.md says what each can know."""

    DEBEZIUM = "debezium-json"
    FLATTENED = "debezium-flattened-json"
    AVRO = "debezium-avro"
    FLATTENED_AVRO = "debezium-flattened-avro"
    TICDC_DEBEZIUM = "ticdc-debezium-json"
    MAXWELL = "maxwell-json"
    CANAL = "canal-json"
