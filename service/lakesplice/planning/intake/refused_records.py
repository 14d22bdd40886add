"""Records that were decoded, but that the table refuses: they become dead letters.

In an insert-only table these are updates and deletes, if the setting says so (`insert_only.py`). In
a table that takes partial images they are inserts without all columns. MySQL and MariaDB leave a
column out of the row image if the statement gave no value for it. Then it has its default, and no
event shows the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.change import Op
from lakesplice.model.choices import NotInserts
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake import insert_only
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.schema.evolution import Fits, SchemaFit

PARTIAL_INSERT = "partial-insert"
_INSERTS = (int(Op.CREATE), int(Op.READ))


def refused_records(
    decoded: Decoded,
    not_inserts: NotInserts | None,
    fit: Callable[[SourceSchema], SchemaFit],
    limit: RecordIndex,
) -> dict[RecordIndex, tuple[str, str]]:
    """Return the records before `limit` that are refused, with the reason and detail of their dead
    letters.
    """
    others = insert_only.dead_others(not_inserts, decoded.blocks, decoded.fences.rows, limit)
    refused = {row: (insert_only.NOT_AN_INSERT, why) for row, why in others.items()}
    return refused | partial_inserts(decoded.blocks, fit, limit)


def partial_inserts(
    blocks: Sequence[ImageBlock], fit: Callable[[SourceSchema], SchemaFit], limit: RecordIndex
) -> dict[RecordIndex, tuple[str, str]]:
    """Return the records before `limit` that insert a row with unknown columns, with the reason and
    detail of their dead letters.
    """
    found: dict[RecordIndex, tuple[str, str]] = {}
    for block in blocks:
        verdict = fit(block.schema)
        if isinstance(verdict, Fits) and verdict.partial:
            absent = ", ".join(field.name for field in block.schema.omitted)
            why = f"a row is inserted without a value for {absent}"
            rows = block.rows[np.isin(block.op, _INSERTS)]
            found |= dict.fromkeys(
                map(RecordIndex, rows[rows < limit].tolist()), (PARTIAL_INSERT, why)
            )
    return found
