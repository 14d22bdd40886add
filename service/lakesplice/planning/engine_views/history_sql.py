"""The query that shows a history table as versions with intervals, in SQL of any engine.

`planning/versions/intervals.py` has the rules, and the same result in Arrow. Each step is one
window, over the versions of a row in the order of their positions. Before them each change is
joined with its period (`planning/versions/periods.py`), of which there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lakesplice.model.names import (
    HISTORY_END,
    HISTORY_OP,
    HISTORY_POSITION,
    HISTORY_TRANSACTION,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.versions.intervals import interval_names


def history_query(
    selected: Sequence[str], names: Sequence[str], schema: TableSchema, source: str, quote: str
) -> str:
    """Return the query: `selected` are the listed columns as SQL, of a relation called `base`, and
    `names` the names they get.

    `schema` is that of a history table, `source` is the table as SQL, `quote` a name of sqlglot's
    for the dialect.
    """

    def quoted(*names: str) -> list[str]:
        return [exp.to_identifier(name, quoted=True).sql(quote) for name in names]

    keys = ", ".join(quoted(*schema.versioned_key))
    file, offset, digest, time = quoted(POSITION_FILE, POSITION_OFFSET, ROW_DIGEST, SOURCE_TS)
    (op,) = quoted(HISTORY_OP)
    valid_from, valid_to, is_current = quoted(*interval_names(names))
    # When a version began, and the next one of its row; the digest of the change before.
    began, until, last, before = quoted("__began", "__until", "__last", "__before")
    # A change's period, and those of the changes before it and after it.
    period, former, following = quoted("__period", "__former", "__following")
    opened, closed, end = quoted("__opened", "__closed", "__end_file")
    row = f"PARTITION BY {keys} ORDER BY {file}, {offset}"
    until_current = f"OVER ({row}\n        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    goes_on = f"base.{end} IS NULL OR base.{following} = base.{period}"
    lines = (
        "SELECT",
        *(f"  {column}," for column in selected),
        f"  base.{began} AS {valid_from},",
        f"  CASE WHEN {goes_on} THEN base.{until}",
        f"    WHEN base.{began} > base.{closed} THEN base.{began}",
        f"    ELSE COALESCE(base.{closed}, base.{began}) END AS {valid_to},",
        f"  base.{following} IS NULL AND base.{end} IS NULL AS {is_current}",
        "FROM (",
        f"  SELECT *, LEAD({began}) OVER ({row}) AS {until},",
        f"    LEAD({period}) OVER ({row}) AS {following}",
        "  FROM (",
        f"    SELECT *, LAG({digest}) OVER ({row}) AS {before},",
        f"      LAG({period}) OVER ({row}) AS {former},",
        f"      MAX(CASE WHEN {time} IS NULL OR {opened} > {time} THEN {opened} ELSE {time} END)",
        f"        {until_current} AS {began}",
        "    FROM (",
        *(f"      {line}" for line in _changes(schema, source, quoted)),
        f"    ) AS changes WHERE {last} = 1",
        f"  ) AS states WHERE {digest} IS NULL OR {before} IS NULL OR {digest} <> {before}",
        f"    OR {former} <> {period}",
        f") AS base\nWHERE base.{op} <> 'd'",
    )
    return "\n".join(lines)


def _changes(schema: TableSchema, source: str, quoted: Callable[..., list[str]]) -> tuple[str, ...]:
    """Return the query of the changes with their periods, counted backwards in a transaction."""
    keys = ", ".join(quoted(*schema.versioned_key))
    file, offset, last = quoted(POSITION_FILE, POSITION_OFFSET, "__last")
    op, transaction, position = quoted(HISTORY_OP, HISTORY_TRANSACTION, HISTORY_POSITION)
    period, opened, closed, end = quoted("__period", "__opened", "__closed", "__end_file")
    return (
        f"SELECT changed.*, periods.{period}, periods.{opened}, periods.{closed},",
        f"  periods.{end}, ROW_NUMBER() OVER (",
        f"    PARTITION BY {keys}, COALESCE({transaction}, {position})",
        f"    ORDER BY {file} DESC, {offset} DESC) AS {last}",
        f"FROM {source} AS changed JOIN (",
        *(f"  {line}" for line in _periods(schema, source, quoted)),
        f") AS periods ON {_within(schema, quoted)}",
        f"WHERE {op} <> '{HISTORY_END}'",
    )


def _periods(schema: TableSchema, source: str, quoted: Callable[..., list[str]]) -> tuple[str, ...]:
    """Return the query of the periods: each begins at an end of all rows, the first one before all
    positions.
    """
    file, offset, time, op = quoted(POSITION_FILE, POSITION_OFFSET, SOURCE_TS, HISTORY_OP)
    transaction, position = quoted(HISTORY_TRANSACTION, HISTORY_POSITION)
    period, opened, closed, last = quoted("__period", "__opened", "__closed", "__last")
    from_file, from_offset, end_file, end_offset = quoted(*_BOUNDS)
    shards = list(zip(quoted(*schema.shard_key), quoted(*_shards(schema)), strict=True))
    own = "".join(f"{name}, " for name, _ in shards)
    within = "".join(f"{name} AS {alias}, " for name, alias in shards)
    over = f"PARTITION BY {own.removesuffix(', ')} " if shards else ""
    over += f"ORDER BY {file}, {offset}"
    first = f"DISTINCT {own}-1, -1, NULL FROM {source}" if shards else "-1, -1, NULL"
    return (
        f"SELECT {within}{file} AS {from_file}, {offset} AS {from_offset},",
        f"  LEAD({file}) OVER ({over}) AS {end_file},",
        f"  LEAD({offset}) OVER ({over}) AS {end_offset},",
        f"  ROW_NUMBER() OVER ({over}) AS {period},",
        f"  MAX({time}) OVER ({over}",
        f"    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS {opened},",
        f"  MAX({time}) OVER ({over}",
        f"    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS {closed}",
        "FROM (",
        f"  SELECT {own}{file}, {offset}, {time}",
        "  FROM (",
        f"    SELECT {own}{file}, {offset}, {time}, ROW_NUMBER() OVER (",
        f"      PARTITION BY {own}COALESCE({transaction}, {position})",
        f"      ORDER BY {file} DESC, {offset} DESC) AS {last}",
        f"    FROM {source} WHERE {op} = '{HISTORY_END}'",
        f"  ) AS all_ends WHERE {last} = 1",
        f"  UNION ALL SELECT {first}) AS ends",
    )


def _within(schema: TableSchema, quoted: Callable[..., list[str]]) -> str:
    """Return the condition that a change is in a period: no position is that of a change and of an
    end.
    """
    file, offset, *bounds = quoted(POSITION_FILE, POSITION_OFFSET, *_BOUNDS)
    from_file, from_offset, end_file, end_offset = (f"periods.{name}" for name in bounds)
    shards = zip(quoted(*schema.shard_key), quoted(*_shards(schema)), strict=True)
    return "\n        AND ".join(
        (
            *(f"changed.{name} = periods.{alias}" for name, alias in shards),
            f"({file} > {from_file} OR ({file} = {from_file} AND {offset} > {from_offset}))",
            f"({end_file} IS NULL OR {file} < {end_file}"
            f" OR ({file} = {end_file} AND {offset} < {end_offset}))",
        )
    )


def _shards(schema: TableSchema) -> list[str]:
    return [f"__shard_{at}" for at, _ in enumerate(schema.shard_key)]


_BOUNDS = ("__from_file", "__from_offset", "__end_file", "__end_offset")
