"""Avro values of many records at once, each with a schema that a registry keeps.

`frame.py` finds the schema's number at a record's head, `schema.py` reads schemas, `walk.py` the
values: field by field, of all records together. No format of change events is known here.
"""

from lakesplice.formats.events.avro.frame import FramedRecord, framed, schema_ids
from lakesplice.formats.events.avro.schema import (
    Node,
    Record,
    RecordField,
    Scalar,
    Union,
    parse_schema,
)
from lakesplice.formats.events.avro.walk import (
    DecodedValues,
    WantedMembers,
    arrow_type,
    read_values,
)

__all__ = [
    "DecodedValues",
    "FramedRecord",
    "Node",
    "Record",
    "RecordField",
    "Scalar",
    "Union",
    "WantedMembers",
    "arrow_type",
    "framed",
    "parse_schema",
    "read_values",
    "schema_ids",
]
