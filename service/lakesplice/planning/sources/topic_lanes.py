"""Lanes: which topics are so far behind that they would hold up the others.

A query's limit per batch is shared in proportion to what each topic has waiting, so a topic with a
long backlog would leave the others next to nothing. Such topics are read by a query of their own,
with a limit of its own, until they have caught up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

# Far behind is several whole batches; caught up is less than one. Between the two a topic stays
# where it is, so that it does not change lanes at every look.
BATCHES_BEHIND = 5


def catching_up(
    lags: Mapping[str, int], batch_offsets_max: int, present: Collection[str] = ()
) -> frozenset[str]:
    """Return the topics for the catch-up lane; `present` are those that are in it now.

    `lags` gives, per topic, how many offsets it is behind. Where all topics are far behind none
    holds up another, and there is no catch-up lane.
    """
    behind = frozenset(
        topic
        for topic, lag in lags.items()
        if lag > batch_offsets_max * (1 if topic in present else BATCHES_BEHIND)
    )
    return frozenset() if len(behind) == len(lags) else behind
