"""New rows of a table fed by hand: base files in the order of the rows, and one index run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.formats.rowindex import Entries
from lakesplice.model.address import GROUP_BITS, Segment
from lakesplice.model.manifest import RunRef
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import base_rows
from lakesplice.planning.rows.index_merge import concatenated, sorted_entries
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.files.base_files import create_base_of
from lakesplice.table.files.index_runs import put_run
from lakesplice.table.protocol.layout import base_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store

# Files of so many rows: several cores can compact them, and an upsert of the newest rows meets one.
ROWS_PER_FILE = 192 * ROWS_PER_PAGE


@dataclass(frozen=True)
class NewRows:
    """What was written; nothing names it yet. Without rows there is neither a file nor a run."""

    files: tuple[NewFile, ...] = ()
    runs: tuple[RunRef, ...] = ()


def write_new_rows(
    store: Store,
    tables: Iterable[pa.Table],
    position: int,
    now: pa.Scalar,
    schema: TableSchema,
    entropy: Entropy,
) -> NewRows:
    """Write rows by stored names to base files, and index them.

    Memory holds about `ROWS_PER_FILE` rows and 28 bytes per key. Blocks. `UsageError` if a key
    occurs twice; the vacuum deletes what was written by then.
    """
    files, pieces = [], []
    for rows in _by_file(tables):
        high, low = key_hash(rows, schema)
        group = entropy.bits(GROUP_BITS)
        files.append(_write(store, base_rows(rows, position, now, schema), group, schema, entropy))
        pieces.append(Entries(high, low, np.full(len(high), group), np.arange(len(high))))
    if not files:
        return NewRows()
    entries, first = sorted_entries(concatenated(pieces))
    if not first.all():
        raise UsageError("a key occurs twice in the given rows; give only one row for each key")
    return NewRows(tuple(files), (put_run(store, entries, entropy),))


def _write(
    store: Store, rows: pa.Table, group: int, schema: TableSchema, entropy: Entropy
) -> NewFile:
    path = base_path(group, 0, entropy)
    return create_base_of(store, path, Segment(group, rows.num_rows), [rows], schema)


def _by_file(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += table.num_rows
        while rows >= ROWS_PER_FILE:
            gathered = pa.concat_tables(held)
            yield gathered.slice(0, ROWS_PER_FILE)
            held = [gathered.slice(ROWS_PER_FILE)]
            rows = held[0].num_rows
    if rows:
        yield pa.concat_tables(held)
