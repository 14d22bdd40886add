"""The plan of a shadow, as JSON. Source: docs/format.md, "Shadows"."""

from __future__ import annotations

import json

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.formats.manifests.partition import integers_out, position_in
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan

# A shadow that isn't filled from a database has another format, so that an older version, which
# would read one, refuses it. Under 2 the parts of files were others.
FORMATS = {
    FilledFrom.DATABASE: 1,
    FilledFrom.TOPIC: 2,
    FilledFrom.FILES: 3,
    FilledFrom.SNAPSHOT: 4,
}
FORMAT = max(FORMATS.values())


def encode_shadow_plan(plan: ShadowPlan) -> bytes:
    """Return a plan as one line of JSON."""
    is_of_database = plan.filled_from is FilledFrom.DATABASE
    value = {
        "format": FORMATS[plan.filled_from],
        "shadow": plan.shadow,
        "topic": plan.topic,
        "topic_id": plan.topic_id,
        "server": plan.server,
        "database": plan.database,
        "table": plan.table,
        "start": [plan.start.file, plan.start.offset],
        "created_ms": plan.created_ms,
        "ends": integers_out(plan.ends),
        "bounds": [list(bound) for bound in plan.bounds],
        "rows": plan.rows,
        **({} if is_of_database else {"filled_from": plan.filled_from.value}),
    }
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode_shadow_plan(data: bytes, path: str) -> ShadowPlan:
    """Read back `encode_shadow_plan`; `path` is for messages.

    `CorruptFileError` if it is no plan, `UnsupportedError` if a newer version wrote it.
    """
    try:
        value = json.loads(data)
        written_by = int(value["format"])
        if written_by > FORMAT:
            raise UnsupportedError(
                "a newer Lakesplice began to fill this table; upgrade this one",
                path=path,
                format=written_by,
            )
        return ShadowPlan(
            shadow=str(value["shadow"]),
            topic=str(value["topic"]),
            topic_id=str(value["topic_id"]),
            server=str(value["server"]),
            database=str(value["database"]),
            table=str(value["table"]),
            start=position_in(value["start"]),
            created_ms=EpochMs(int(value["created_ms"])),
            ends={int(number): Offset(int(offset)) for number, offset in value["ends"].items()},
            bounds=tuple(tuple(str(text) for text in bound) for bound in value["bounds"]),
            rows=int(value["rows"]),
            filled_from=FilledFrom(value.get("filled_from", FilledFrom.DATABASE)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            "a shadow's plan can't be read; give up the shadow and begin again",
            path=path,
            reason=repr(error)[:200],
        ) from error
