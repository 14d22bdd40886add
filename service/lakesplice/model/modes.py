"""What a table may be besides one whose rows change."""

from __future__ import annotations

from enum import StrEnum


class NotInserts(StrEnum):
    """What becomes of an update or a delete that arrives for an insert-only table."""

    PARK = "park"
    DEAD_LETTER = "dead-letter"


# The key of tables that rows are appended to: a column that `planning/rows/appended_rows.py` adds.
SOURCE_POSITION = "_source_position"
APPENDED = (SOURCE_POSITION,)
