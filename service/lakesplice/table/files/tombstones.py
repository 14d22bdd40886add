"""Finds out which rows are deleted, before a write that relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op, above
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import GROUP, IS_DELETED, OP, POSITION_FILE, POSITION_OFFSET, ROW
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store

_POSITION = (POSITION_FILE, POSITION_OFFSET)


def deleted_rows(store: Store, manifest: Manifest, group: Integers, row: Integers) -> Mask:
    """Mark the addresses whose row is deleted, by base files and waiting changes together.

    Addresses in file groups that aren't live are not marked. Blocks: reads one column of each
    addressed file, three if changes wait for it, and these changes.
    """
    deleted = np.zeros(len(group), np.bool_)
    order = np.argsort(group, kind="stable")
    groups = group[order]
    waiting = _newest(store, manifest, set(np.unique(group).tolist()))
    for path, file in manifest.files.items():
        first, rows = 0, None
        for segment in file.segments:
            start, stop = np.searchsorted(groups, (segment.group, segment.group + 1))
            if start < stop:
                if rows is None:
                    changed = any(one.group in waiting for one in file.segments)
                    rows = _rows(store, manifest, path, with_positions=changed)
                mine = rows.slice(first, segment.rows)
                state = mine.column(IS_DELETED).to_numpy().copy()
                if segment.group in waiting:
                    waiting[segment.group].apply_to(state, mine)
                ours = order[start:stop]
                deleted[ours] = state[row[ours]]
            first += segment.rows
    return deleted


@dataclass(frozen=True, slots=True)
class _NewestChanges:
    """The newest waiting change of each changed row of a file group: the row, its position, and
    whether it is a delete.
    """

    row: Integers
    file: Integers
    offset: Integers
    dead: Mask

    def apply_to(self, state: Mask, rows: pa.Table) -> None:
        """Set which of a group's rows are deleted; a late change is below its row's position, and
        changes nothing.
        """
        stands = (rows.column(name).to_numpy()[self.row] for name in _POSITION)
        effective = above(self.file, self.offset, *stands)
        state[self.row[effective]] = self.dead[effective]


def _rows(store: Store, manifest: Manifest, path: str, *, with_positions: bool) -> pa.Table:
    names = (IS_DELETED, *(_POSITION if with_positions else ()))
    with open_base(store, manifest.files[path], manifest.schema) as reader:
        return pa.concat_tables(reader.read_each(names))


def _newest(store: Store, manifest: Manifest, groups: set[int]) -> Mapping[int, _NewestChanges]:
    """Return per file group the newest waiting change of each row that has one."""
    changes = read_waiting(store, manifest.deltas, manifest.schema, groups, columns=())
    names = (GROUP, ROW, POSITION_FILE, POSITION_OFFSET, OP)
    group, row, file, offset, op = (changes.column(name).to_numpy() for name in names)
    order = np.lexsort((offset, file, row, group))
    group, row, op = group[order], row[order], op[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (group[1:] != group[:-1]) | (row[1:] != row[:-1])
    group, dead = group[last], op[last] == Op.DELETE
    changes_of = (row[last], file[order][last], offset[order][last], dead)
    found = {}
    for one in np.unique(group):
        start, stop = np.searchsorted(group, (one, one + 1))
        found[int(one)] = _NewestChanges(*(values[start:stop] for values in changes_of))
    return found
