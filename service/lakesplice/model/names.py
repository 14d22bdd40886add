"""Names of databases, tables and columns, escaped reversibly to [A-Za-z0-9_].

Engines disagree about what a name may hold, and folders starting with an underscore are hidden
from them. A character outside the set becomes `_x<hex>_` (its code point). So that this can be
read back, an underscore that would start such a sequence by accident is itself escaped, and so is
the first underscore of a name that must not start with one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from lakesplice.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z0-9_]")
_ESCAPE = re.compile(r"_x([0-9a-f]+)_")

POSITION_FILE = "_position_file"
POSITION_OFFSET = "_position_offset"
ROW_DIGEST = "_row_digest"
IS_DELETED = "_is_deleted"
SOURCE_TS = "_source_ts"
# What readers of Delta's change feed get beside a row's own columns. Delta refuses a table that has
# such a column a feed.
CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIME = "_commit_timestamp"
FEED_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIME)
# Hive's name of null in the folder of a partition.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# Only in tables that take partial images, and never shown to readers (`model/schema.py`).
COLUMN_POSITIONS = "_column_positions"
SYSTEM_COLUMNS = (POSITION_FILE, POSITION_OFFSET, ROW_DIGEST, IS_DELETED, SOURCE_TS)

# Fields beside the user's columns in change batches and deltas.
KEY_HIGH = "_key_high"
KEY_LOW = "_key_low"
OP = "_op"
BEFORE_DIGEST = "_before_digest"
CHANGED = "_changed"
GROUP = "_group"
ROW = "_row"
# The key of tables that rows are appended to: a column that `planning/rows/appended_rows.py` adds.
SOURCE_POSITION = "_source_position"
APPENDED = (SOURCE_POSITION,)
# Columns of history tables, which `planning/versions/version_columns.py` adds: the position of a
# row's change, which is the last part of the key, its kind, and its transaction.
HISTORY_POSITION = "_history_position"
HISTORY_OP = "_history_op"
HISTORY_TRANSACTION = "_history_transaction"
HISTORY_END = "t"
"""The value of `_history_op` in a row that isn't a version: all rows of the source ended there."""
HISTORY_SNAPSHOT_END = "s"
"""The same: a snapshot of the whole table was taken there, and the rows that it lacks ended."""
HISTORY_ENDS = (HISTORY_END, HISTORY_SNAPSHOT_END)
HISTORY_COLUMNS = (HISTORY_POSITION, HISTORY_OP, HISTORY_TRANSACTION)
RESERVED = frozenset(
    (*SYSTEM_COLUMNS, COLUMN_POSITIONS, KEY_HIGH, KEY_LOW, OP, BEFORE_DIGEST, CHANGED, GROUP, ROW)
)

DEFAULT_DATABASE = "default"


def names_list(names: str | Sequence[str]) -> list[str]:
    """Return names as a list; a text is one name, and not a list of letters."""
    return [names] if isinstance(names, str) else list(names)


@lru_cache(maxsize=1 << 16)
def escape(name: str) -> str:
    """Return `name` within [A-Za-z0-9_]. `unescape` reverses it, and different names stay
    different.
    """
    out = []
    for at, char in enumerate(name):
        if not _PLAIN.fullmatch(char) or (char == "_" and _ESCAPE.match(name, at)):
            out.append(f"_x{ord(char):x}_")
        else:
            out.append(char)
    return "".join(out)


def unescape(name: str) -> str:
    """Return the source's name for an escaped one."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def _escape_leading(escaped: str) -> str:
    return (
        f"_x5f_{escaped[1:]}" if escaped.startswith("_") and not _ESCAPE.match(escaped) else escaped
    )


def column_name(source_name: str) -> str:
    """Return the stored name of a source column; a column with a reserved name is renamed."""
    escaped = escape(source_name)
    # Engines compare column names without regard to case, so the system names must not be met in
    # any.
    return _escape_leading(escaped) if escaped.lower() in RESERVED else escaped


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table of the lake by the source's own names."""

    database: str
    table: str

    @classmethod
    def from_topic(cls, topic: str) -> TableName:
        """Take the last two parts of a topic (`prefix.database.table`); with a single part the
        database is `default`.
        """
        parts = topic.split(".")
        if not all(parts[-2:]):
            raise UsageError(
                "a topic must end in database.table; exclude it by topic_pattern", topic=topic
            )
        return cls(parts[-2] if len(parts) > 1 else DEFAULT_DATABASE, parts[-1])

    @classmethod
    def from_path(cls, path: str) -> TableName:
        """Read back `path`."""
        database, _, table = path.partition("/")
        return cls(unescape(database), unescape(table))

    @property
    def path(self) -> str:
        """The table's folder in the lake, `database/table`, never hidden by an underscore."""
        return "/".join(_escape_leading(escape(part)) for part in (self.database, self.table))

    def matches(self, patterns: Sequence[str]) -> bool:
        """Whether one of some patterns (*, ?, […]) is for `database.table`, or there are none."""
        return not patterns or any(fnmatchcase(str(self), pattern) for pattern in patterns)

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


def possible_tables(topic: str) -> Sequence[TableName]:
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
