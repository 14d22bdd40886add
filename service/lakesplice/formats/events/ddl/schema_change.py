"""What one record says about a schema change, in any format."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakesplice.formats.events.blocks.positions import binlog_position
from lakesplice.formats.events.ddl.columns import Statement, TableShown, TableUnread
from lakesplice.model.position import RANK_OTHER, Position

_TEMPORARY = re.compile(r"\s*DROP\s+(/\*!\d*\s*)?TEMPORARY\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What one record says of tables, at a position in the binlog (epoch 0; None: it names none).

    `ddl` is the statement as the source has it; several records may tell of one. `statements` are
    what is read of it, or `about` one table only. `before` and `after` are the columns of the table
    that the record is about, if it shows them. `gtid` is the statement's transaction. One that is
    `of_snapshot` was no statement of the source: so the connector says what it finds when it
    begins.
    """

    position: Position | None
    ddl: str
    statements: tuple[Statement, ...]
    before: TableShown | None = None
    after: TableShown | None = None
    about: tuple[object, ...] = ()
    gtid: str | None = None
    of_snapshot: bool = False

    @property
    def unread(self) -> tuple[TableUnread, ...]:
        """What couldn't be read."""
        return tuple(found for found in self.statements if isinstance(found, TableUnread))


def is_of_session(ddl: str) -> bool:
    """Whether a statement drops what a session made for itself alone: servers tell of that, and a
    real table may have the name as well.
    """
    return _TEMPORARY.match(ddl) is not None


def lowest_position(file: object, offset: object) -> Position | None:
    """The lowest position at a position in the binlog."""
    first = binlog_position(file, offset, 0)
    return None if first is None else Position(first.file, first.offset - RANK_OTHER)
