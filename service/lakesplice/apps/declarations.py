"""Types of a source's columns as declarations for the configuration.

They are the present types. A declaration says that it holds for all records that are still to be
read: only the topic of schema changes knows an ALTER in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from operator import attrgetter
from typing import Any

from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, type_of
from lakesplice.model.names import TableName
from lakesplice.planning.source_rows.columns import DatabaseColumn
from lakesplice.storage.source.database import SourceColumn

_PATTERNS = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Declarations:
    """Entries of `tables`, in the order of the tables, and the columns without an exact type, as
    `table.column: its type`.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    untyped: list[str] = field(default_factory=list)


def declarations(
    database: str,
    columns: Iterable[SourceColumn],
    tables: Sequence[str],
    handling: ConverterSettings,
) -> Declarations:
    """Return what to declare for the tables whose names match one of the globs; for all tables
    without any.
    """
    found = Declarations()
    for table, own in groupby(columns, attrgetter("table")):
        if tables and not any(fnmatchcase(table, pattern) for pattern in tables):
            continue
        declared: dict[str, str] = {}
        for column in own:
            defined = DatabaseColumn(column.name, column.type, column.charset).defined
            type_ = None if defined is None else type_of(defined, handling)
            if type_ is None or not type_.is_declarable:
                found.untyped.append(f"{table}.{column.name}: {column.type}")
            else:
                declared[column.name] = type_.written
        match = _PATTERNS.sub(lambda sign: f"[{sign[0]}]", str(TableName(database, table)))
        found.entries.append({"match": match, "columns": declared})
    return found
