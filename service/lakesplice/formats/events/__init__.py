"""Change events from Kafka: their formats, and what all of them share.

`decode` takes records and returns blocks of row images, dead letters and stops. `decode.py` chooses
the format; `records_to_blocks.py` lets that format's reader read the records, one form after the
other (`record_forms.py`); `event_format.py` is the interface of a format. The formats are `canal/`,
`debezium/` and `maxwell/`. They use `ddl/` (the schema changes that sources report), `avro/` (Avro
values), `blocks/` (row images of a batch), `cells/` (exact types of columns), `json_reading/` (many
JSON texts at once) and `values/` (input and output of decoding). docs/formats.md says what each
format can know, docs/types.md what types become; docs/decisions/0010-decoding-change-events.md,
0022-a-seam-for-formats.md and 0026-avro-field-by-field.md have the reasons.
"""

from lakesplice.formats.events.avro import schema_ids
from lakesplice.formats.events.decode import decode
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.column_types import TypeHistory, TypeVersion
from lakesplice.formats.events.values.declared_types import DeclaredType, declare
from lakesplice.formats.events.values.decode_context import DecodeContext, SchemaText
from lakesplice.formats.events.values.refusals import DeadLetters, DeadReason, Stop

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
