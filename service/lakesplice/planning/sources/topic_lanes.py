"""Lanes: which topics are so far behind that they would hold up the others.

A query divides its limit per batch in proportion to what each topic has waiting, so a topic with a
long backlog would leave little for the others. Such topics are read by a query of their own, with a
limit of its own, until they have caught up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

# Far behind means several whole batches, caught up less than one. Between the two a topic stays
# where it is, so that it does not change lanes at every look.
BATCHES_BEHIND = 5


def catching_up(
    lags: Mapping[str, int], batch_offsets_max: int, present: Collection[str] = ()
) -> frozenset[str]:
    """Return the topics for the catch-up lane; `present` are those that are in it now.

    `lags` is how many offsets each topic is behind. If all topics are far behind, none holds up
    another, and there is no catch-up lane.
    """
    behind = frozenset(
        topic
        for topic, lag in lags.items()
        if lag > batch_offsets_max * (1 if topic in present else BATCHES_BEHIND)
    )
    return frozenset() if len(behind) == len(lags) else behind
