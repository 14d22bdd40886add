"""The query that shows a history table as versions with intervals, in SQL of any engine.

`planning/versions/intervals.py` has the rules, and the same result in Arrow. Each step is one
window, over the versions of a row in the order of their positions.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lakesplice.model.names import (
    HISTORY_OP,
    HISTORY_POSITION,
    HISTORY_TRANSACTION,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.planning.versions.intervals import interval_names


def history_query(
    selected: Sequence[str], names: Sequence[str], key: Sequence[str], source: str, quote: str
) -> str:
    """Return the query: `selected` are the listed columns as SQL, of a relation called `base`, and
    `names` the names they get.

    `key` are the stored names of the columns that all versions of a row share, `source` is the
    table as SQL, `quote` a name of sqlglot's for the dialect.
    """

    def quoted(name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(quote)

    keys = ", ".join(quoted(name) for name in key)
    system = (POSITION_FILE, POSITION_OFFSET, ROW_DIGEST, SOURCE_TS, HISTORY_OP)
    file, offset, digest, time, op = map(quoted, system)
    transaction, position = quoted(HISTORY_TRANSACTION), quoted(HISTORY_POSITION)
    row = f"PARTITION BY {keys} ORDER BY {file}, {offset}"
    valid_from, valid_to, is_current = map(quoted, interval_names(names))
    added = ("__began", "__until", "__last", "__before", "__follows")
    began, until, last, before, follows = map(quoted, added)
    until_current = f"OVER ({row}\n      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    lines = (
        "SELECT",
        *(f"  {column}," for column in selected),
        f"  base.{began} AS {valid_from},",
        f"  base.{until} AS {valid_to},",
        f"  base.{follows} IS NULL AS {is_current}",
        "FROM (",
        f"  SELECT *, LEAD({began}) OVER ({row}) AS {until},",
        f"    LEAD({file}) OVER ({row}) AS {follows}",
        "  FROM (",
        f"    SELECT *, LAG({digest}) OVER ({row}) AS {before},",
        f"      MAX({time}) {until_current} AS {began}",
        "    FROM (",
        "      SELECT *, ROW_NUMBER() OVER (",
        f"        PARTITION BY {keys}, COALESCE({transaction}, {position})",
        f"        ORDER BY {file} DESC, {offset} DESC) AS {last}",
        f"      FROM {source}",
        f"    ) AS changes WHERE {last} = 1",
        f"  ) AS states WHERE {digest} IS NULL OR {before} IS NULL OR {digest} <> {before}",
        f") AS base\nWHERE base.{op} <> 'd'",
    )
    return "\n".join(lines)
