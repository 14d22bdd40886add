"""Verdicts on single events that all forms of Debezium's JSON share."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lakesplice.formats.events.blocks.positions import binlog_position, source_time
from lakesplice.formats.events.debezium.schemaless import UndeclaredColumns
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import Halt, Truncated
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.parking import ParkCode


def unknown_op(op: object) -> Flaw:
    """Return the verdict on an operation that no version of the connector is known to send."""
    return Flaw(DeadReason.UNKNOWN_OP, f"operation {shown(op)}; known are c, u, d, r, t and m")


def truncated(source: Mapping[str, object]) -> Truncated | Flaw:
    """The verdict on a truncated table at the event's position; an event without one has its
    record's position.
    """
    moment = source_time((source.get("ts_us"), 1), (source.get("ts_ms"), 1000))
    if source.get("file", "") == "":
        return Truncated(None, moment=moment)
    place = binlog_position(source.get("file"), source.get("pos"), source.get("row"))
    if place is None:
        return Flaw(DeadReason.MISSING_POSITION, "the TRUNCATE has no position in a binlog")
    gtid = source.get("gtid")
    return Truncated(place, gtid if isinstance(gtid, str) else None, moment=moment)


def truncated_somewhere() -> Halt:
    """The verdict on a truncated table if nothing shows when it was truncated."""
    return Halt(
        ParkCode.TRUNCATED,
        "the source table was truncated; give `lakesplice reset --anew`, or set"
        " skipped.operations=t at the"
        " connector to keep rows that a TRUNCATE removes",
    )


def undeclared(missing: UndeclaredColumns, context: DecodeContext) -> Halt:
    """The verdict on events with columns whose types aren't known."""
    names = ", ".join(missing.names)
    columns = ", ".join(f"{json.dumps(name)}: TYPE" for name in missing.names)
    why = f" ({missing.why})" if missing.why else ""
    return Halt(
        ParkCode.TYPES_UNDECLARED,
        f"the events have no schemas, and no types are known for {names}{why}; add to the"
        f' configuration tables: [{{match: "{context.table}", columns: {{{columns}}}}}], or'
        " switch on value.converter.schemas.enable at the connector",
    )
