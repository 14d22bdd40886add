"""What happens to a table if its topic no longer has the records with which its manifest
continues.
"""

from __future__ import annotations

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.errors import MissingOffsetsError
from lakesplice.model.choices import MissingOffsets
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.planning.sources.missing_offsets import after_loss, can_continue
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.protocol.offsets import gap_names

_LOST = (ParkCode.OFFSETS_GONE, ParkCode.TOPIC_RECREATED)


def policy_for(driver: Driver, table: ServiceTable, reason: ParkReason) -> MissingOffsets:
    """Return what is to be done for a reason that `check_source` gives; most reasons park."""
    if reason.code not in _LOST or table.source.topic != table.topic:
        return MissingOffsets.PARK
    return driver.settings.on_missing_offsets(table.origin)


def deal_with_loss(driver: Driver, table: ServiceTable, topic: Topic, reason: ParkReason) -> bool:
    """Let the table continue where the broker still has records, or park it; return whether it
    continues.

    `MissingOffsetsError` if the service is to stop. No batch of the table may be running.
    """
    policy = policy_for(driver, table, reason)
    if policy is MissingOffsets.STOP:
        raise MissingOffsetsError(
            f"{reason.detail}; the service stops, since missing_offsets is stop; to continue with "
            "all other tables, set it to park",
            table=str(table.name),
            topic=topic.name,
        )
    goes_on = policy is MissingOffsets.CONTINUE
    if not goes_on or not can_continue(table.source, topic.id, topic.latest):
        table.park(reason)
        return False
    table.continue_at(
        lambda source: after_loss(source, topic.id, topic.earliest),
        "missing_offsets is continue, and the broker lost records",
    )
    gaps = gap_names(table.manifest)
    driver.log.warning("records-passed-over", table=str(table.name), topic=topic.name, gaps=gaps)
    return True
