"""Change events of Debezium's MySQL and MariaDB connectors, as JSON with or without schemas or as
Avro with a schema registry.

`envelope.py` reads whole events, `flattened.py` the rows that the transform ExtractNewRecordState
makes of them. Both get shapes from `connect.py` (with schemas) or `schemaless.py`, and keys from
`keys.py`. In Avro `avro.py` reads both; `avro_schema.py` has the shapes, `avro_keys.py` the keys.
`ticdc.py` reads TiCDC's events in Debezium's protocol.
"""

from lakesplice.formats.events.debezium.avro import AVRO, FLATTENED_AVRO
from lakesplice.formats.events.debezium.avro_schema import format_of
from lakesplice.formats.events.debezium.envelope import DEBEZIUM
from lakesplice.formats.events.debezium.flattened import FLATTENED
from lakesplice.formats.events.debezium.ticdc import TICDC_DEBEZIUM

__all__ = ["AVRO", "DEBEZIUM", "FLATTENED", "FLATTENED_AVRO", "TICDC_DEBEZIUM", "format_of"]
