"""Change events from Kafka: their formats, and what all of them share.

`decode` takes records and gives blocks of row images, dead letters and stops. `decode.py` chooses
the format, `records_to_blocks.py` asks that format's reader (`event_format.py` is what a format has
to offer) for the records of one form after the other (`record_forms.py`). The formats are `canal/`,
`debezium/` and `maxwell/`; below them `ddl/` reads what sources tell of their schemas, `avro/`
reads Avro's values, `blocks/` puts row images together, `cells/` makes exact types of their
columns, `json_reading/` reads many records at once, and `values/` says what decoding takes and
gives. docs/formats.md says what each can know, docs/types.md what types become;
docs/decisions/0010-decoding-change-events.md, 0022-a-seam-for- formats.md and
0026-avro-field-by-field.md have the reasons.
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
