"""The records of a partition whose order is proven, among them some that are returned to
(`returned_records.py`). The others are left out before anything is decided about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lakesplice.formats.events.values.blocks import Decoded
from lakesplice.model.arrays import Integers
from lakesplice.model.progress.epochs import Epoch, entered_epochs
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.intake.order.returned_records import Waiting, follow_returned


@dataclass(frozen=True, slots=True)
class ProvenRecords:
    """What was `decoded`, and its `order`, without records that were left out: those that are
    `unproven`, and those that are `repeated`, as they repeat one which was applied late.

    `first` is the number of the order's changes that were read or passed over before; `state` and
    `epochs` are those behind them.
    """

    decoded: Decoded
    order: RecordOrder
    first: int
    state: PartitionState
    epochs: tuple[Epoch, ...]
    unproven: Sequence[RecordIndex] = ()
    repeated: Sequence[RecordIndex] = ()

    @classmethod
    def of(
        cls,
        offsets: Integers,
        decoded: Decoded,
        missing: MissingRecords,
        partition: int,
        state: PartitionState,
        epochs: tuple[Epoch, ...],
        waiting: Waiting,
    ) -> ProvenRecords:
        """Find them among the records with these offsets, which a partition takes next."""
        order = RecordOrder.of(offsets, decoded, missing)
        if not waiting:
            return cls(decoded, order, 0, state, epochs)
        unproven: set[int] = set()
        repeated: set[int] = set()
        while True:
            first = int(np.searchsorted(order.positions.record, state.met_until))
            again = order.positions.between(0, first)
            path = follow_returned(again, partition, state, epochs, waiting)
            if not path.unproven and not path.repeated:
                break
            unproven |= path.unproven
            repeated |= path.repeated
            decoded = _without(decoded, np.searchsorted(offsets, [*path.unproven, *path.repeated]))
            order = RecordOrder.of(offsets, decoded, missing)
        epochs = entered_epochs(epochs, partition, path.course.entered)
        left_out = (
            [RecordIndex(int(at)) for at in np.searchsorted(offsets, sorted(found))]
            for found in (unproven, repeated)
        )
        return cls(decoded, order, first, path.course.state, epochs, *left_out)


def _without(decoded: Decoded, records: Integers) -> Decoded:
    """Return what was decoded without some records."""
    blocks = (block.filter(~np.isin(block.rows, records)) for block in decoded.blocks)
    return replace(
        decoded,
        blocks=tuple(block for block in blocks if len(block)),
        fences=decoded.fences.filter(~np.isin(decoded.fences.rows, records)),
    )
