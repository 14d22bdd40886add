"""Dead letters of a batch into their topic, before the commit that names them in the lake."""

from __future__ import annotations

from collections.abc import Sequence

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.errors import SourceUnavailable
from lakesplice.model.manifest import DeadLetterRef
from lakesplice.spark.kafka.dead_letter_topic import LetterTopic
from lakesplice.table.files.dead_letters import letters_of
from lakesplice.telemetry.catalogue import UNSENT_LETTERS


def send_letters(
    driver: Driver, table: ServiceTable, refs: Sequence[DeadLetterRef], topic: LetterTopic
) -> None:
    """Send the letters of some files; what the topic doesn't take is counted and logged.

    The batch continues without it, since the durable dead letter is the lake's. Blocks for at most
    about the request timeout twice.
    """
    letters = letters_of(table.store, refs)
    try:
        topic.send(str(table.name), letters)
    except SourceUnavailable as error:
        driver.metrics.add(UNSENT_LETTERS, len(letters), table=str(table.name))
        driver.log.warning(
            "dead-letters-unsent", table=str(table.name), letters=len(letters), error=str(error)
        )
