"""What `run --once` did, said at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from lakesplice.apps.service.tables import ServiceTable
from lakesplice.model.driver_status import TROUBLES, DriverStatus, TopicState


def say_what_was_done(log: Any, status: DriverStatus, tables: Iterable[ServiceTable]) -> bool:
    """Log a summary; return whether all went well that could.

    Topics that are parked or refused wait for a person as they did before. But where no topic
    matches, or one was given up that may succeed later, the end must not look like success.
    """
    states = Counter(topic.standing.state for topic in status.topics)
    for topic in status.topics:
        if topic.standing.state in TROUBLES:
            log.warning(
                "not-taken-in",
                topic=topic.topic,
                state=topic.standing.state.value,
                reason=topic.standing.reason,
            )
    well = bool(status.topics) and not states[TopicState.RESTING]
    say = log.info if well else log.error
    say(
        "once-ended",
        topics=len(status.topics),
        changes=sum(table.changes_in for table in tables),
        **{state.value: states[state] for state in TopicState if states[state]},
    )
    return well
