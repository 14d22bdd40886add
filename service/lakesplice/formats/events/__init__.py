"""Change events from Kafka: their formats, and what all of them share.

`decode` takes records and gives blocks of row images, dead letters and stops. Top down: `decode.py`
chooses the format; `engine.py` goes from template to template (`template.py`, `shape.py`) and asks
the format's reader (`dialect.py` is the seam); `group.py` reads the records of one template
(`lines.py`, `proof.py`, `screen.py`, `strict.py`); the reader makes columns of them (`build.py`,
`places.py`, `cells.py`, `encoding.py`, `decimals.py`, `declared.py`, `typed.py`); `ledger.py`
sees that none is lost, `mappings.py` changes types as the user chose, `unavailable.py` takes out
what stands for a value that wasn't sent. Avro's values are read in `avro/`. The formats are the
folders; `ddl/` reads what sources tell of their schemas. docs/formats.md says what each can know,
docs/types.md what types become; docs/decisions/0010-decoding-change-events.md, 0022-a-seam-for-
formats.md and 0026-avro-field-by-field.md have the reasons.
"""

from lakesplice.formats.events.avro import schema_ids
from lakesplice.formats.events.declared import DeclaredType, declare
from lakesplice.formats.events.decode import decode
from lakesplice.formats.events.typed import TypeHistory, TypeVersion
from lakesplice.formats.events.values import (
    DeadLetters,
    DeadReason,
    DecodeContext,
    Decoded,
    ImageBlock,
    SchemaText,
    Stop,
)

__all__ = [
    "DeadLetters",
    "DeadReason",
    "DeclaredType",
    "DecodeContext",
    "Decoded",
    "ImageBlock",
    "SchemaText",
    "Stop",
    "TypeHistory",
    "TypeVersion",
    "declare",
    "decode",
    "schema_ids",
]
