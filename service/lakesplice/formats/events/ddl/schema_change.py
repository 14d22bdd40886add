"""What one record says about a schema change, in any format."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakesplice.formats.events.blocks.positions import binlog_position
from lakesplice.formats.events.ddl.columns import Statement, TableShown, TableUnread
from lakesplice.model.moments import EpochUs
from lakesplice.model.position import RANK_OTHER, Position

_TEMPORARY = re.compile(r"\s*DROP\s+(/\*!\d*\s*)?TEMPORARY\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What one record says about tables, at a position in the binlog (epoch 0; None if it has
    none).

    `ddl` is the statement as the source has it; several records may report one statement.
    `statements` are what was parsed from it, or only the parts about the table `about`. `before`
    and `after` are the columns of the record's table, if it shows them. `gtid` is the statement's
    transaction. With `of_snapshot` it was no statement of the source: the connector reports what it
    finds when it begins. `moment` is when the source ran the statement, None if it isn't known.
    """

    position: Position | None
    ddl: str
    statements: tuple[Statement, ...]
    before: TableShown | None = None
    after: TableShown | None = None
    about: tuple[object, ...] = ()
    gtid: str | None = None
    of_snapshot: bool = False
    moment: EpochUs | None = None

    @property
    def unread(self) -> tuple[TableUnread, ...]:
        """Statements that couldn't be read."""
        return tuple(found for found in self.statements if isinstance(found, TableUnread))


def is_of_session(ddl: str) -> bool:
    """Whether a statement drops something that a session made for itself alone: servers report
    that, and a real table may have the same name.
    """
    return _TEMPORARY.match(ddl) is not None


def lowest_position(file: object, offset: object) -> Position | None:
    """The lowest position at a position in the binlog."""
    first = binlog_position(file, offset, 0)
    return None if first is None else Position(first.file, first.offset - RANK_OTHER)
