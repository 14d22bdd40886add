"""Settings of the connector and its converter that change values, if events show them.

Nulls that became defaults: the connector omits `source.snapshot` from a change of the binlog
(SnapshotRecord.toSource, Debezium 3.5), and its schema has the default "false". So a change of the
binlog that has "false" passed through a converter which replaces nulls by defaults, and so did the
row's columns: in JSON with `replace.null.with.default=true`, in Avro without
`ignore.default.for.nullables=true`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.formats.events.values.encoding import Cell
from lakesplice.model.arrays import Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.types import Primitive

# The setting, and behind ": " what it does and what to do.
_NULLS = "NULL arrives as the column's DEFAULT, if there is one"
NULLS_IN_JSON = (
    f"value.converter.replace.null.with.default: {_NULLS}; set it to false, then take a new"
    " snapshot"
)
NULLS_IN_AVRO = (
    f"value.converter.ignore.default.for.nullables: {_NULLS}; set it to true (if the converter is"
    " Apicurio's, which has no such setting, use another one), then take a new snapshot"
)
NULLS_IN_FLATTENED = (
    f"transforms.unwrap.replace.null.with.default: {_NULLS}; set it to false, and the converter's"
    " own setting too (value.converter.replace.null.with.default=false in JSON,"
    " value.converter.ignore.default.for.nullables=true in Avro), then take a new snapshot"
)
TIME_PRECISION = (
    "time.precision.mode: with connect, DATETIME and TIME lose digits below a millisecond; set"
    " adaptive_time_microseconds"
)
UNSIGNED = (
    "bigint.unsigned.handling.mode: with long, numbers of a BIGINT UNSIGNED from 2^63 on become"
    " negative; set precise"
)
# Debezium 3.5 knows INT UNSIGNED and not its synonyms.
SYNONYM = (
    "INTEGER UNSIGNED: the connector treats it as a signed type, so numbers from 2^31 on arrive"
    " as negative; declare the type as INT UNSIGNED (ALTER TABLE ... MODIFY), then take a new"
    " snapshot"
)
_IN_MILLIS = (
    "int64:org.apache.kafka.connect.data.Timestamp",
    "int32:org.apache.kafka.connect.data.Time",
)


def nulls_are_replaced(snapshot: pa.Array | None, op: Marks, live: Mask) -> bool:
    """Whether events show, by their `source.snapshot`, that nulls became defaults."""
    if snapshot is None or not pa.types.is_string(snapshot.type):
        return False
    filled = np.asarray(pc.equal(snapshot, "false").fill_null(False))
    return bool((filled & live & (op != Op.READ)).any())


def cautions_by_types(cells: Iterable[Cell], history: TypeHistory | None) -> Iterator[str]:
    """Yield the settings that the column types of events with schemas show; `history` is what the
    source's DDL said about them.
    """
    agreed = {} if history is None else history.agreed.columns
    for cell in cells:
        if cell.source_type in _IN_MILLIS:
            yield TIME_PRECISION
        known = agreed.get(cell.name)
        kinds = (cell.source_type, None if known is None else known.type.kind)
        if kinds == ("int64", Primitive.DECIMAL):
            yield UNSIGNED
        elif kinds == ("int32", Primitive.LONG):
            yield SYNONYM
