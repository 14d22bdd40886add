"""Schema changes that the source's connectors report: records become a history of tables' columns.

`records.py` reads a record (Maxwell's: `maxwell_records.py`). `statements.py`, with
`definitions.py` and `words.py`, reads the DDL in it if only that shows which columns there are.
`history.py` stores what columns each table had, and since when; `drops.py` where it was dropped.
docs/decisions/0032-types-from-ddl.md and 0036-dropped-tables.md have the reasons.
"""

from lakesplice.formats.events.ddl.columns import DefinedColumn
from lakesplice.formats.events.ddl.drops import DropKind, TableDrop
from lakesplice.formats.events.ddl.history import SchemaHistory, history_of
from lakesplice.formats.events.ddl.maxwell_records import MARK as MAXWELLS_MARK
from lakesplice.formats.events.ddl.records import read_schema_change
from lakesplice.formats.events.ddl.schema_change import SchemaChange
from lakesplice.formats.events.ddl.statements import read_statements
from lakesplice.formats.events.ddl.versions import TableVersion

__all__ = [
    "MAXWELLS_MARK",
    "DefinedColumn",
    "DropKind",
    "SchemaChange",
    "SchemaHistory",
    "TableDrop",
    "TableVersion",
    "history_of",
    "read_schema_change",
    "read_statements",
]
