"""The query that shows a history table as versions with intervals, in SQL of any engine.

`planning/versions/intervals.py` has the rules, and the same result in Arrow. Each step is one
window, over the versions of a row in the order of their positions. Before them each change is
joined with its period (`planning/versions/periods.py`), of which there are few. A change continues
the period before its own if a snapshot between them has its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lakesplice.model.names import (
    HISTORY_ENDS,
    HISTORY_OP,
    HISTORY_POSITION,
    HISTORY_SNAPSHOT_END,
    HISTORY_TRANSACTION,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import RANK_DELETE, RANK_OTHER
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
    prefix = _prefix(schema)

    def quoted(*names: str) -> list[str]:
        named = (name.replace(_OWN, prefix) for name in names)
        return [exp.to_identifier(name, quoted=True).sql(quote) for name in named]

    file, offset = quoted(POSITION_FILE, POSITION_OFFSET)
    (op,) = quoted(HISTORY_OP)
    valid_from, valid_to, is_current = quoted(*interval_names(names))
    # When a version began, and the next one of its row.
    began, until = quoted("#began", "#until")
    # Whether the next version goes on from this one, null if there is none; and if it doesn't, when
    # this one ended.
    goes_on, ends = quoted("#goes_on", "#ends")
    period, continues, former = quoted("#period", "#continues", "#former")
    ended, last_closed, last_end = quoted("#ended", "#last_closed", "#last_end")
    row = f"PARTITION BY {', '.join(quoted(*schema.versioned_key))} ORDER BY {file}, {offset}"
    lines = (
        "SELECT",
        *(f"  {column}," for column in selected),
        f"  base.{began} AS {valid_from},",
        f"  CASE WHEN base.{goes_on} = 1 THEN base.{until}",
        f"    WHEN base.{goes_on} IS NULL AND base.{last_end} IS NULL THEN NULL",
        f"    WHEN base.{began} > base.{ends} THEN base.{began}",
        f"    ELSE COALESCE(base.{ends}, base.{began}) END AS {valid_to},",
        f"  base.{goes_on} IS NULL AND base.{last_end} IS NULL AS {is_current}",
        "FROM (",
        f"  SELECT *, LEAD({began}) OVER ({row}) AS {until},",
        f"    LEAD(CASE WHEN {continues} = {former} THEN 1 ELSE 0 END) OVER ({row}) AS {goes_on},",
        f"    CASE WHEN LEAD({period}) OVER ({row}) IS NULL THEN {last_closed}",
        f"      ELSE LEAD({ended}) OVER ({row}) END AS {ends}",
        *(f"  {line}" for line in _states(schema, source, row, quoted)),
        f") AS base\nWHERE base.{op} <> 'd'",
    )
    return "\n".join(lines)


def _states(
    schema: TableSchema, source: str, row: str, quoted: Callable[..., list[str]]
) -> tuple[str, ...]:
    """Return the lines from FROM on that give the changes that made a difference; `row` is a window
    over the changes of a row.
    """
    digest, time, began, last = quoted(ROW_DIGEST, SOURCE_TS, "#began", "#last")
    # The digest of the change before, its period, and when that ended.
    before, former, ended = quoted("#before", "#former", "#ended")
    # When the period of the row's last change ended, and where.
    last_closed, last_end = quoted("#last_closed", "#last_end")
    opened, closed, end = quoted("#opened", "#closed", "#end_file")
    period, continues = quoted("#period", "#continues")
    until_current = f"OVER ({row}\n        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    whole_row = f"OVER ({row}\n        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    return (
        "FROM (",
        f"  SELECT *, LAG({digest}) OVER ({row}) AS {before},",
        f"    LAG({period}) OVER ({row}) AS {former},",
        f"    LAG({closed}) OVER ({row}) AS {ended},",
        f"    LAST_VALUE({closed}) {whole_row} AS {last_closed},",
        f"    LAST_VALUE({end}) {whole_row} AS {last_end},",
        f"    MAX(CASE WHEN {time} IS NULL OR {opened} > {time} THEN {opened} ELSE {time} END)",
        f"      {until_current} AS {began}",
        "  FROM (",
        *(f"    {line}" for line in _changes(schema, source, quoted)),
        f"  ) AS changes WHERE {last} = 1",
        f") AS states WHERE {digest} IS NULL OR {before} IS NULL OR {digest} <> {before}",
        f"  OR {former} <> {continues}",
    )


def _changes(schema: TableSchema, source: str, quoted: Callable[..., list[str]]) -> tuple[str, ...]:
    """Return the query of the changes with their periods, counted backwards in a transaction. A
    snapshot has the changes whose position is just above its end.
    """
    keys = ", ".join(quoted(*schema.versioned_key))
    file, offset, last = quoted(POSITION_FILE, POSITION_OFFSET, "#last")
    op, transaction, position = quoted(HISTORY_OP, HISTORY_TRANSACTION, HISTORY_POSITION)
    period, opened, closed, end = quoted("#period", "#opened", "#closed", "#end_file")
    continues, from_file, has = quoted("#continues", "#from_file", "#has")
    return (
        f"SELECT changed.*, periods.{period}, periods.{opened}, periods.{closed},",
        f"  periods.{end}, CASE WHEN {file} = periods.{from_file} AND {offset} = periods.{has}",
        f"    THEN periods.{period} - 1 ELSE periods.{period} END AS {continues},",
        "  ROW_NUMBER() OVER (",
        f"    PARTITION BY {keys}, COALESCE({transaction}, {position})",
        f"    ORDER BY {file} DESC, {offset} DESC) AS {last}",
        f"FROM {source} AS changed JOIN (",
        *(f"  {line}" for line in _periods(schema, source, quoted)),
        f") AS periods ON {_within(schema, quoted)}",
        f"WHERE {op} NOT IN ({_ENDS})",
    )


def _periods(schema: TableSchema, source: str, quoted: Callable[..., list[str]]) -> tuple[str, ...]:
    """Return the query of the periods: each begins at an end of many rows, the first one before
    all positions. If that is a snapshot's end, `__has` is the offset of the snapshot's rows.
    """
    file, offset, time, op = quoted(POSITION_FILE, POSITION_OFFSET, SOURCE_TS, HISTORY_OP)
    transaction, position = quoted(HISTORY_TRANSACTION, HISTORY_POSITION)
    period, opened, closed, last = quoted("#period", "#opened", "#closed", "#last")
    (has,) = quoted("#has")
    above = RANK_OTHER - RANK_DELETE
    from_file, from_offset, end_file, end_offset = quoted(*_BOUNDS)
    shards = list(zip(quoted(*schema.shard_key), quoted(*_shards(schema)), strict=True))
    own = "".join(f"{name}, " for name, _ in shards)
    within = "".join(f"{name} AS {alias}, " for name, alias in shards)
    over = f"PARTITION BY {own.removesuffix(', ')} " if shards else ""
    over += f"ORDER BY {file}, {offset}"
    first = f"DISTINCT {own}{_FIRST} FROM {source}" if shards else _FIRST
    return (
        f"SELECT {within}{file} AS {from_file}, {offset} AS {from_offset}, {has},",
        f"  LEAD({file}) OVER ({over}) AS {end_file},",
        f"  LEAD({offset}) OVER ({over}) AS {end_offset},",
        f"  ROW_NUMBER() OVER ({over}) AS {period},",
        f"  MAX({time}) OVER ({over}",
        f"    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS {opened},",
        f"  MAX({time}) OVER ({over}",
        f"    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS {closed}",
        "FROM (",
        f"  SELECT {own}{file}, {offset}, {time}, {has}",
        "  FROM (",
        f"    SELECT {own}{file}, {offset}, {time},",
        f"      CASE WHEN {op} = '{HISTORY_SNAPSHOT_END}' THEN {offset} + {above} END AS {has},",
        "      ROW_NUMBER() OVER (",
        f"      PARTITION BY {own}COALESCE({transaction}, {position})",
        f"      ORDER BY {file} DESC, {offset} DESC) AS {last}",
        f"    FROM {source} WHERE {op} IN ({_ENDS})",
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
    return [f"#shard_{at}" for at, _ in enumerate(schema.shard_key)]


def _prefix(schema: TableSchema) -> str:
    """Return how names of the query's own columns begin, since no column of the table does so."""
    prefix = "__"
    while any(name.startswith(prefix) for name in schema.names):
        prefix += "_"
    return prefix


# Stands for the prefix; no stored name has it.
_OWN = "#"
_ENDS = ", ".join(f"'{op}'" for op in HISTORY_ENDS)
_FIRST = "-1, -1, NULL, NULL"
_BOUNDS = ("#from_file", "#from_offset", "#end_file", "#end_offset")
