"""Change events of Debezium's MySQL and MariaDB connectors, as JSON with or without schemas."""

from lakesplice.formats.debezium.declared import DeclaredType, declare
from lakesplice.formats.debezium.decode import decode
from lakesplice.formats.debezium.values import (
    DeadLetters,
    DeadReason,
    DecodeContext,
    Decoded,
    ImageBlock,
    Stop,
)

__all__ = [
    "DeadLetters",
    "DeadReason",
    "DeclaredType",
    "DecodeContext",
    "Decoded",
    "ImageBlock",
    "Stop",
    "declare",
    "decode",
]
