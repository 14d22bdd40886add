"""Positions, tables and times of many events at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.values.encoding import MICROS_MAX, MICROS_MIN
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers, Marks, Mask
from lakesplice.model.change import Op
from lakesplice.model.moments import EpochUs
from lakesplice.model.names import DEFAULT_DATABASE, TableName
from lakesplice.model.position import (
    FILE_BITS,
    OFFSET_BITS,
    RANK_DELETE,
    RANK_OTHER,
    ROW_BITS,
    TIMESTAMP_BITS,
    Position,
)

_NO_TOPIC_CHARACTER = re.compile(r"[^A-Za-z0-9._-]")
_BINLOG = re.compile(r".*\.(\d{1,10})")
_MICROS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Positions:
    """Packed positions as defined in `model/position.py`, and which rows have no valid position."""

    file: Integers
    offset: Integers
    missing: Mask
    beyond: Mask


def binlog_positions(file: pa.Array, offset: pa.Array, row: pa.Array, op: Marks) -> Positions:
    """Read positions from binlog files' names, offsets and rows; the epoch is 0, and a delete comes
    before a create with the same offset and row.
    """
    files, no_file = _file_numbers(file)
    missing = no_file | nulls_in(offset) | nulls_in(row)
    offsets, rows = (column.fill_null(0).to_numpy() for column in (offset, row))
    beyond = (offsets < 0) | (offsets >= 1 << OFFSET_BITS) | (rows < 0) | (rows >= 1 << ROW_BITS)
    beyond |= files >= 1 << FILE_BITS
    packed = _packed(np.where(beyond, 0, offsets), np.where(beyond, 0, rows), op)
    return Positions(files, packed, missing, beyond)


def binlog_position(file: object, offset: object, row: object) -> Position | None:
    """Return the position of one event that isn't a row's, in epoch 0; None if it names no
    position.
    """
    if not isinstance(file, str) or type(offset) is not int or type(row) is not int:
        return None
    match = _BINLOG.fullmatch(file)
    if match is None or int(match[1]) >= 1 << FILE_BITS:
        return None
    if not 0 <= offset < 1 << OFFSET_BITS or not 0 <= row < 1 << ROW_BITS:
        return None
    return Position.of(0, int(match[1]), offset, row, RANK_OTHER)


def kafka_positions(offsets: Integers, op: Marks, row: Integers | None = None) -> Positions:
    """Return the records' offsets as positions of file 0; `row` is the place of a change within its
    record.
    """
    rows = np.zeros(len(offsets), np.int64) if row is None else row
    nowhere = np.zeros(len(offsets), np.bool_)
    beyond: Mask = (offsets >= 1 << OFFSET_BITS) | (rows >= 1 << ROW_BITS)
    packed = _packed(np.where(beyond, 0, offsets), np.where(beyond, 0, rows), op)
    return Positions(np.zeros(len(offsets), np.int64), packed, nowhere, beyond)


def tidb_positions(commit: pa.Array, op: Marks) -> Positions:
    """Return commit timestamps of TiDB as positions of file 0; a key changes once in one."""
    missing = nulls_in(commit)
    stamps = commit.fill_null(0).to_numpy()
    beyond: Mask = (stamps < 0) | (stamps >= 1 << TIMESTAMP_BITS)
    rank = np.where(op == Op.DELETE, RANK_DELETE, RANK_OTHER)
    packed: Integers = (np.where(beyond, 0, stamps) << 1) | rank
    return Positions(np.zeros(len(op), np.int64), packed, missing, beyond)


def tidb_position(commit: object) -> Position | None:
    """Return the position of one event that isn't a row's, at a commit timestamp of TiDB; None if
    it isn't one.
    """
    if type(commit) is not int or not 0 <= commit < 1 << TIMESTAMP_BITS:
        return None
    return Position(0, commit << 1 | RANK_OTHER)


def _packed(offsets: Integers, rows: Integers, op: Marks) -> Integers:
    rank = np.where(op == Op.DELETE, RANK_DELETE, RANK_OTHER)
    packed: Integers = (offsets << (ROW_BITS + 1)) | (rows << 1) | rank
    return packed


def _file_numbers(file: pa.Array) -> tuple[Integers, Mask]:
    """The number after the last dot of a binlog's name, which may have more than six digits."""
    encoded = file.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    matches = [_BINLOG.fullmatch(name) for name in names]
    numbers = np.array([int(match[1]) if match else -1 for match in matches] + [-1], np.int64)
    found: Integers = numbers[encoded.indices.fill_null(len(names)).to_numpy()]
    return found, found < 0


def other_table(database: object, table: object, expected: TableName) -> Flaw | None:
    """Compare the table that an event names with the topic's.

    Topics allow fewer characters than names do; Debezium writes `_` for the others. A topic of one
    part doesn't name the database.
    """
    found = tuple(_NO_TOPIC_CHARACTER.sub("_", str(part or "")) for part in (database, table))
    wanted = (expected.database, expected.table)
    if (database, table) == wanted or found == wanted:
        return None
    if expected.database == DEFAULT_DATABASE and wanted[1] in (table, found[1]):
        return None
    return Flaw(
        DeadReason.WRONG_TABLE,
        f"the event is of {shown(f'{database}.{table}')}, its topic of {expected}",
    )


def other_tables(databases: pa.Array, tables: pa.Array, expected: TableName) -> dict[int, Flaw]:
    """Return the rows that belong to another table, each with its verdict."""
    names = pc.binary_join_element_wise(
        databases, tables, "\0", null_handling="replace", null_replacement=""
    )
    _, first, code = np.unique(
        names.dictionary_encode().indices.to_numpy(), return_index=True, return_inverse=True
    )
    verdicts = [
        other_table(databases[row].as_py(), tables[row].as_py(), expected)
        for row in map(int, first)
    ]
    wrong = np.array([verdict is not None for verdict in verdicts], np.bool_)
    flaws: dict[int, Flaw] = {}
    for row in map(int, np.flatnonzero(wrong[code])):
        if verdict := verdicts[code[row]]:
            flaws[row] = verdict
    return flaws


def source_times(*stated: tuple[pa.Array, int]) -> tuple[pa.Array, Mask]:
    """Return when the source committed, and a mask of the times outside the years 1 to 9999.

    `stated` are columns, the best first, each with its unit in microseconds; null where none has a
    time.
    """
    count = len(stated[0][0])
    micros = pa.nulls(count, pa.int64())
    beyond = np.zeros(count, np.bool_)
    for times, factor in stated:
        outside = pc.or_(
            pc.less(times, MICROS_MIN // factor), pc.greater(times, MICROS_MAX // factor)
        ).fill_null(False)
        beyond |= outside.to_numpy(zero_copy_only=False)
        in_range = pc.if_else(outside, 0, times)
        micros = pc.coalesce(micros, pc.multiply(in_range, factor))
    return micros.cast(_MICROS), beyond


def source_time(*stated: tuple[object, int]) -> EpochUs | None:
    """Return the same of one event that isn't a row's; None if it has no time in these years."""
    for value, factor in stated:
        if type(value) is int and MICROS_MIN <= value * factor <= MICROS_MAX:
            return EpochUs(value * factor)
    return None


def nulls_in(column: pa.Array) -> Mask:
    """Mark the values of a column that are null."""
    mask: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return mask
