"""Which table of the source a topic is of, by its name."""

from __future__ import annotations

from collections.abc import Sequence

from lakesplice.model.names import TableName


def ways_to_read(topic: str) -> Sequence[TableName]:
    """Return the tables that a topic with a prefix may belong to, first the one of its last two
    parts.
    """
    parts = topic.split(".")
    ends = range(len(parts) - 1, 0, -1)
    return [
        TableName(".".join(parts[start:end]), ".".join(parts[end:]))
        for end in ends
        for start in range(end - 1, 0, -1)
    ]
