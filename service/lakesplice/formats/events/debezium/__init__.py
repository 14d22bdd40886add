"""Change events of Debezium's MySQL and MariaDB connectors, as JSON with or without schemas.

`envelope.py` reads whole events, `flattened.py` those that ExtractNewRecordState made rows of. Both
take shapes from `connect.py` (with schemas) or `schemaless.py`, keys from `keys.py`.
"""

from lakesplice.formats.events.debezium.envelope import DEBEZIUM
from lakesplice.formats.events.debezium.flattened import FLATTENED

__all__ = ["DEBEZIUM", "FLATTENED"]
