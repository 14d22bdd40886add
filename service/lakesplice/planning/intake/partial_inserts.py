"""Inserts of rows that don't say all of their columns: dead letters, since nothing tells the rest.

MySQL and MariaDB leave a column out of the row image where the statement gave no value for it, so
it has its default, which no event tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.change import Op
from lakesplice.model.schema import SourceSchema
from lakesplice.planning.schema.evolution import Fits, SchemaFit

PARTIAL_INSERT = "partial-insert"
_INSERTS = (int(Op.CREATE), int(Op.READ))


def partial_inserts(
    blocks: Sequence[ImageBlock], fit: Callable[[SourceSchema], SchemaFit], limit: int
) -> dict[int, tuple[str, str]]:
    """Return the records before `limit` that insert a row of which columns are unknown, each with
    the reason and the detail of its dead letter.
    """
    found: dict[int, tuple[str, str]] = {}
    for block in blocks:
        verdict = fit(block.schema)
        if isinstance(verdict, Fits) and verdict.partial:
            absent = ", ".join(field.name for field in block.schema.unsent)
            why = f"a row is inserted without a value for {absent}"
            rows = block.rows[np.isin(block.op, _INSERTS)]
            found |= dict.fromkeys(rows[rows < limit].tolist(), (PARTIAL_INSERT, why))
    return found
