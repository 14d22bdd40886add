"""How a table continues although the broker lost records that it hasn't read.

Retention deleted them, or the topic was deleted and created again.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import Ordering
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.gaps import read_until
from lakesplice.planning.sources.operator_directions import moved


def can_continue(source: SourceState, topic_id: str, latest: Offsets) -> bool:
    """Whether the table can continue with the records that the broker still has; `latest` has,
    per partition, the offset that its next record will get.

    It can't if the topic ends before what was read, or if the changes of a topic that was created
    again can't be compared with earlier ones.
    """
    if topic_id != source.topic_id:
        return source.ordering is not Ordering.KAFKA and not source.epochs
    known = source.partitions.items()
    return all(at in latest and state.next_offset <= latest[at] for at, state in known)


def after_loss(source: SourceState, topic_id: str, earliest: Offsets) -> SourceState:
    """Return the source at the first offsets that the broker still has, by partition, with the gap
    before them; `can_continue` must hold.
    """
    if topic_id != source.topic_id:
        return _in_new_topic(source, topic_id, earliest)
    known = {**dict.fromkeys(earliest, PartitionState(Offset(0))), **source.partitions}
    lost = {at: offset for at, offset in earliest.items() if known[at].next_offset < offset}
    return moved(replace(source, partitions=known), lost)


def _in_new_topic(source: SourceState, topic_id: str, earliest: Offsets) -> SourceState:
    """Return the source at the start of a topic that was created again: it keeps the positions of
    the database, which still show which changes are newer, and no offset of the former topic.
    """
    lost = tuple(
        Gap(source.topic_id, at, read_until(state), None, state.position)
        for at, state in sorted(source.partitions.items())
    )
    partitions = {
        at: replace(
            source.partitions.get(at, PartitionState(Offset(0))).before_missing(),
            next_offset=Offset(0),
            met_until=0,
            repeating=False,
            lossy=True,
        )
        for at in earliest
    }
    gaps = (*source.gaps, *lost)
    started = replace(source, topic_id=topic_id, partitions=partitions, snapshot=None, gaps=gaps)
    return moved(started, earliest)
