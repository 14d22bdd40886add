"""Finds out which rows are deleted, before a write that relies on it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import Op
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import GROUP, IS_DELETED, OP, POSITION_FILE, POSITION_OFFSET, ROW
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.ports import Store


def deleted_rows(store: Store, manifest: Manifest, group: Integers, row: Integers) -> Mask:
    """Mark the addresses whose row is deleted, by base files and waiting changes together.

    Addresses in file groups that aren't live are not marked. Blocks: reads one column of each
    addressed file, and the deltas that wait for it.
    """
    deleted = np.zeros(len(group), np.bool_)
    order = np.argsort(group, kind="stable")
    groups = group[order]
    waiting = _newest(store, manifest, set(np.unique(group).tolist()))
    for path, file in manifest.files.items():
        first, flags = 0, None
        for segment in file.segments:
            start, stop = np.searchsorted(groups, (segment.group, segment.group + 1))
            if start < stop:
                flags = _flags(store, manifest, path) if flags is None else flags
                state = flags[first : first + segment.rows].copy()
                if segment.group in waiting:
                    changed, dead = waiting[segment.group]
                    state[changed] = dead
                ours = order[start:stop]
                deleted[ours] = state[row[ours]]
            first += segment.rows
    return deleted


def _flags(store: Store, manifest: Manifest, path: str) -> Mask:
    with open_base(store, manifest.files[path], manifest.schema) as reader:
        parts = [rows.column(0).to_numpy() for rows in reader.read_each((IS_DELETED,))]
    return np.concatenate(parts)


def _newest(
    store: Store, manifest: Manifest, groups: set[int]
) -> Mapping[int, tuple[Integers, Mask]]:
    """Return per file group the rows with waiting changes, each once, and whether the newest is a
    delete.
    """
    changes = read_waiting(store, manifest.deltas, manifest.schema, groups, columns=())
    names = (GROUP, ROW, POSITION_FILE, POSITION_OFFSET, OP)
    group, row, file, offset, op = (changes.column(name).to_numpy() for name in names)
    order = np.lexsort((offset, file, row, group))
    group, row, op = group[order], row[order], op[order]
    last = np.ones(len(order), np.bool_)
    last[:-1] = (group[1:] != group[:-1]) | (row[1:] != row[:-1])
    group, row, dead = group[last], row[last], op[last] == Op.DELETE
    found = {}
    for one in np.unique(group):
        start, stop = np.searchsorted(group, (one, one + 1))
        found[int(one)] = row[start:stop], dead[start:stop]
    return found
