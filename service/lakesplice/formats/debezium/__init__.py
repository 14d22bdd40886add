"""Change events of Debezium's MySQL and MariaDB connectors, as JSON with or without schemas.

`decode` takes records and gives blocks of row images, dead letters and stops. Top down: `decode.py`
goes from template to template (`template.py`, `connect.py`, `schemaless.py`, `keys.py`); `group.py`
reads the records of one (`lines.py`, `proof.py`, `screen.py`, `strict.py`); `block.py` makes
columns of them (`source.py`, `cells.py`, `decimals.py`); `ledger.py` sees that none is lost.
docs/decisions/0010-decoding-change-events.md has the reasons.
"""

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
