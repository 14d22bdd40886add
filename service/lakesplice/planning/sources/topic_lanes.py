"""Lanes: which topics would hold up the others, so that another query has to read them.

A query divides its limit per batch in proportion to what each topic has waiting, so a topic with a
long backlog would leave little for the others, and so would hundreds of new tables together. Such
topics are read by a query of their own, with a limit of its own, until they have caught up. There
each of them gets its share of every batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

# Far behind is several whole batches; caught up is less than one. Between the two a topic stays
# where it is, so that it does not change lanes at every look.
BATCHES_BEHIND = 5


@dataclass(frozen=True, slots=True)
class TopicBacklog:
    """How many `records` a topic has waiting, and what decides whether others come first.

    Topics of a higher `priority` come first. Among topics of one priority those in their first load
    come last: they have read less than is waiting.
    """

    records: int
    priority: int = 0
    is_first_load: bool = False

    @property
    def rank(self) -> tuple[int, bool]:
        """What decides which topics give way to others; the lowest comes first."""
        return -self.priority, self.is_first_load


def catching_up(
    backlogs: Mapping[str, TopicBacklog],
    batch_offsets_max: int,
    present: Collection[str] | None = None,
) -> frozenset[str]:
    """Return the topics for the catch-up lane; `present` are those that are in it now, None if no
    query runs.

    A topic that gives way to others stays with them only if one batch can read it together with
    all topics before it; so these never wait for it. A first load comes back once it has read half
    of its topic. If every topic is far behind, those that come first stay, and if all come first
    there is no catch-up lane.
    """
    waiting = {topic: one for topic, one in backlogs.items() if one.records}
    # Idle ones too: they may have records at any time.
    first = min((one.rank for one in backlogs.values()), default=(0, False))
    behind: set[str] = set()
    total = 0
    for topic in sorted(
        waiting, key=lambda name: (waiting[name].rank, waiting[name].records, name)
    ):
        one, is_back = waiting[topic], present is not None and topic in present
        alone_max = batch_offsets_max * (1 if is_back else BATCHES_BEHIND)
        is_in = present is not None and not is_back
        room = batch_offsets_max * (BATCHES_BEHIND if is_in else 1)
        gives_way = one.rank > first
        # First loads come back together: each by itself would restart the queries.
        is_loading = is_back and one.is_first_load
        if one.records > alone_max or (gives_way and (is_loading or total + one.records > room)):
            behind.add(topic)
        else:
            total += one.records
    if len(behind) == len(backlogs):
        behind = {topic for topic in behind if waiting[topic].rank > first}
    return frozenset(behind)
