"""Records of a partition that become dead letters: those that couldn't be decoded, those that the
table refuses, and those whose order isn't proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.planning.intake.order.dead_letter_places import around_each
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.proven_records import ProvenRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, records_in
from lakesplice.planning.intake.order.returned_records import Waiting
from lakesplice.planning.intake.report import NewDeadLetter
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.late_order import ORDER_UNPROVEN, UNPROVEN


def new_dead_letters(
    proven: ProvenRecords, refused: Mapping[RecordIndex, tuple[str, str]], limit: RecordIndex
) -> tuple[NewDeadLetter, ...]:
    """Return the dead letters before `limit`, in the order of their records; `refused` maps records
    to the reason and the detail.
    """
    dead = proven.decoded.dead
    count = int(np.searchsorted(dead.rows, limit))
    failed = zip(dead.rows[:count], dead.reason, dead.detail, strict=False)
    letters = [NewDeadLetter(RecordIndex(int(row)), code, detail) for row, code, detail in failed]
    unproven = {row: (ORDER_UNPROVEN, UNPROVEN) for row in proven.unproven if row < limit}
    letters += [NewDeadLetter(row, *why) for row, why in {**refused, **unproven}.items()]
    return tuple(sorted(letters, key=lambda letter: letter.record))


def with_places(
    letters: Sequence[NewDeadLetter],
    offsets: Integers,
    proven: ProvenRecords,
    course: EpochPath,
    missing: MissingRecords,
    partition: int,
    *,
    waiting: Waiting,
) -> tuple[NewDeadLetter, ...]:
    """Return the dead letters with what was read around each; the arguments are those of
    `around_each`.
    """
    records = [letter.record for letter in letters]
    around = around_each(records, offsets, proven, course, missing, partition, waiting=waiting)
    return tuple(replace(letter, around=around.get(letter.record)) for letter in letters)


def ignored_before(proven: ProvenRecords, limit: RecordIndex) -> int:
    """Return the number of records before `limit` that have neither a change nor a dead letter, and
    repeat none: the reader ignored them.
    """
    dead = int(np.searchsorted(proven.decoded.dead.rows, limit))
    left_out = sum(row < limit for row in (*proven.unproven, *proven.repeated))
    return limit - records_in(proven.decoded.blocks, limit) - dead - left_out
