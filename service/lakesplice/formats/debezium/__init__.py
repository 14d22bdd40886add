"""Change events of Debezium's MySQL and MariaDB connectors, as JSON with or without schemas."""

from lakesplice.formats.debezium.declared import DeclaredType, declare
from lakesplice.formats.debezium.values import (
    DeadLetters,
    DeadReason,
    Decoded,
    DecodeContext,
    ImageBlock,
    Stop,
)

__all__ = [
    "DeadLetters",
    "DeadReason",
    "DecodeContext",
    "Decoded",
    "DeclaredType",
    "ImageBlock",
    "Stop",
    "declare",
]
