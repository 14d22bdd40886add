"""Rewrites a base file without some of its rows: the others get a new file group, and entries for a
new run of the row index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.rowindex import Entries
from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.arrays import KeyHashes, Mask, Unsigned
from lakesplice.model.manifest import Manifest
from lakesplice.model.names import IS_DELETED
from lakesplice.planning.rows.index_merge import take
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.table.files.base_files import addresses, create_base_of, open_base
from lakesplice.table.files.index_runs import are_indexed_at
from lakesplice.table.protocol.layout import base_path, partition_folder
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.ports import Entropy, Store


class RemainingRows:
    """The rows of one file that remain; memory holds a mark and a key hash per row.

    `chosen` marks the rows to leave out, given the columns `names` of some rows. `left_out` has
    these columns of the rows that were left out. Blocks: reads these columns of the whole file.
    """

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        file: BaseFile,
        names: Sequence[str],
        chosen: Callable[[pa.Table], Mask],
    ) -> None:
        self._store, self._file, self._schema = store, file, manifest.schema
        self._away: list[Mask] = []
        self._hashes: list[tuple[Unsigned, Unsigned]] = []
        self._deleted: list[Mask] = []
        left_out = []
        with open_base(store, file, manifest.schema) as reader:
            for rows in reader.read_each(tuple(names)):
                self._away.append(chosen(rows))
                left_out.append(rows.filter(pa.array(self._away[-1])))
        self.left_out: pa.Table = pa.concat_tables(left_out)

    def write(self, group: int, entropy: Entropy) -> NewFile | None:
        """Write the remaining rows as a new file group; None if there are none."""
        left = self._file.rows - self.left_out.num_rows
        if not left:
            return None
        partition = self._file.partition
        folder = partition_folder(self._schema.partitioned_by, partition)
        path, segment = base_path(group, 0, entropy, folder), Segment(group, left)
        rows = self._rows()
        new = create_base_of(self._store, path, segment, rows, self._schema, partition)
        return replace(new, base=replace(new.base, cube=self._file.cube))

    def entries(self, group: int, manifest: Manifest) -> Entries:
        """Return the addresses of the rows that were written, except for rows that had moved
        away.
        """
        keys = KeyHashes(*(np.concatenate(part) for part in zip(*self._hashes, strict=True)))
        count = len(keys.high)
        found = Entries(*keys, np.full(count, group, np.int64), np.arange(count))
        deleted = np.concatenate(self._deleted)
        if not self._schema.partitioned_by or not deleted.any():
            return found
        remaining = np.flatnonzero(~np.concatenate(self._away))
        here = addresses(self._file, remaining)
        return take(found, ~deleted | are_indexed_at(self._store, manifest, keys, here))

    def _rows(self) -> Iterator[pa.Table]:
        with open_base(self._store, self._file, self._schema) as reader:
            for table, away in zip(reader.read_each(), self._away, strict=True):
                if away.any():
                    table = table.filter(pa.array(~away))
                self._hashes.append(key_hash(table, self._schema))
                deleted = table.column(IS_DELETED).combine_chunks()
                self._deleted.append(deleted.fill_null(False).to_numpy(zero_copy_only=False))
                yield table
