"""Whether a topic is still the one that a table's manifest continues."""

from __future__ import annotations

from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.progress.source_state import PartitionState, SourceState

_RELOAD = "give `lakesplice reset --anew` to reload the table"


def check_source(
    source: SourceState,
    topic_name: str,
    topic_id: str,
    earliest: Offsets,
    latest: Offsets,
) -> ParkReason | None:
    """Return why the table can't continue with the topic as the broker has it; None if it can.

    `earliest` and `latest` give, per partition, the first available offset and the next one to
    come. Deleted offsets that were never applied would be lost changes.
    """
    if topic_name != source.topic:
        return ParkReason(
            ParkCode.TOPIC_RECREATED,
            f"the table was filled from topic {source.topic!r}, whose positions say nothing about"
            " another topic's; let kafka.topic_pattern match the former topic, or remove the"
            " table's folder and restart",
            topic_name,
        )
    topic = source.topic
    if topic_id != source.topic_id:
        return ParkReason(
            ParkCode.TOPIC_RECREATED,
            f"the topic was deleted and created again (id {source.topic_id} was applied, it is"
            f" {topic_id} now); {_RELOAD} from it",
            topic,
        )
    for partition in sorted(source.partitions.keys() | earliest.keys()):
        wanted = source.partitions.get(partition, PartitionState(Offset(0))).next_offset
        lost = _lost_records(wanted, earliest.get(partition), latest.get(partition, 0))
        if lost:
            detail = f"{lost}; {_RELOAD}"
            return ParkReason(ParkCode.OFFSETS_GONE, detail, topic, partition, wanted)
    return None


def _lost_records(wanted: int, earliest: int | None, latest: int) -> str:
    """Return which records from the wanted offset on a partition has lost; empty if none."""
    if earliest is None:
        return "the partition no longer exists"
    if wanted < earliest:
        return (
            f"the broker has dropped offsets {wanted} to {earliest} (exclusive) before they were"
            " applied; lengthen the topic's retention"
        )
    if wanted > latest:
        return (
            f"the topic ends at offset {latest}, but records beyond it were applied, so it has lost"
            " records"
        )
    return ""
