"""Row images, which Delta readers read a commit's changes from.

They are in Parquet files of the columns that readers of the log see.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakesplice.model.address import BaseFile, Partition
from lakesplice.model.arrays import KeyHashes, Mask
from lakesplice.model.names import IS_DELETED
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import ColumnEdit, Edits, apply_edits
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.row_images import (
    INSERT,
    UPDATE_AFTER,
    among,
    image_layout,
    images,
    live,
    rewritten_images,
)
from lakesplice.splicing.pages.new_values import differing, stored
from lakesplice.splicing.pages.whole_numbers import in_numbers, numbers
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.chosen_rows import KnownRows, chosen_rows, edits_of_chosen
from lakesplice.table.files.image_files import encoded_images
from lakesplice.table.files.whole_files import put_file
from lakesplice.table.protocol.layout import change_data_path
from lakesplice.table.protocol.new_files import ChangeImages, NewFile
from lakesplice.table.protocol.ports import Entropy, Store

# What is held in memory until it is written; a file has so much before its compression.
_BYTES_MAX = 64 * 2**20
_NO_KEYS = KeyHashes(np.empty(0, np.uint64), np.empty(0, np.uint64))


class ImageWriter:
    """Writes the images of one commit, or of one task's part of it; used by one thread.

    `arriving` are keys of rows that the commit adds elsewhere: a row of such a key that is deleted
    moves there. Blocks; raises as reading a base file does, and `StorageError`.
    """

    def __init__(
        self,
        store: Store,
        schema: TableSchema,
        entropy: Entropy,
        arriving: KeyHashes = _NO_KEYS,
    ) -> None:
        self._store = store
        self._schema = schema
        self._entropy = entropy
        self._arriving = arriving
        self._left: list[KeyHashes] = []
        self._held: dict[Partition, list[pa.Table]] = {}
        self._bytes = 0
        self._written: list[ChangeImages] = []

    def rewritten(
        self, source: pa.NativeFile, file: BaseFile, edits: Edits, known: KnownRows
    ) -> None:
        """Take the images of a base file's rows that edits change; `source` is the file, open."""
        before = chosen_rows(
            store=self._store,
            source=source,
            file=file,
            schema=self._schema,
            rows=edits.rows,
            names=self._needed,
            known=known,
            as_numbers=not len(self._arriving.high),  # keys are hashed as what they are
        )
        self.edited(file.partition, before, edits)

    def edited(self, partition: Partition, before: pa.Table, edits: Edits) -> None:
        """Take the images of rows that edits change; `before` has the rows `edits.rows`, in their
        order, as they were.
        """
        schema, before = self._schema, before.select(self._needed)
        mine = edits_of_chosen(edits, edits.rows)
        moves = np.zeros(len(edits.rows), np.bool_)
        if len(self._arriving.high):
            keys = key_hash(before, schema)
            moves = among(keys, self._arriving)
            gone = moves & live(before) & ~live(apply_edits(before.select([IS_DELETED]), mine))
            self._left.append(keys.only(gone))
        before = in_numbers(before).select(image_layout(schema).names[:-1])
        mine = _in_numbers(mine, before.column_names, schema)
        found = rewritten_images(before, mine, _differs(before, mine, schema), moves)
        # Both images of each row: to add up the bytes of many slices takes longer.
        self._hold(partition, found, 2 * before.nbytes)

    def added(self, new: NewFile) -> None:
        """Take the images of the rows of a new base file; after those of rewritten ones."""
        schema, left = self._schema, _united(self._left)
        with open_base(self._store, new.base, schema) as reader:
            for rows in reader.read_each():
                moved = among(key_hash(rows, schema), left) if len(left.high) else ~live(rows)
                for kind, marked in ((INSERT, ~moved), (UPDATE_AFTER, moved)):
                    found = in_numbers(images(rows, live(rows) & marked, kind, schema))
                    self._hold(new.base.partition, found, found.nbytes)

    def finish(self) -> tuple[ChangeImages, ...]:
        """Return all files, at least one: without any a reader would take every row of the base
        files for changed.
        """
        if not self._written and not self._held:
            nothing = in_numbers(image_layout(self._schema).empty_table())
            self._held[(None,) * len(self._schema.partitioned_by)] = [nothing]
        self._write()
        return tuple(self._written)

    @property
    def _needed(self) -> list[str]:
        """The columns of a row's images, and its key."""
        return [*dict.fromkeys((*self._schema.key, *image_layout(self._schema).names[:-1]))]

    def _hold(self, partition: Partition, images: pa.Table, size: int) -> None:
        if images.num_rows:
            self._held.setdefault(partition, []).append(images)
            self._bytes += size
        if self._bytes > _BYTES_MAX:
            self._write()

    def _write(self) -> None:
        for partition, parts in self._held.items():
            path = change_data_path(self._entropy)
            data = encoded_images(pa.concat_tables(parts), image_layout(self._schema))
            written = put_file(self._store, path, data)
            self._written.append(ChangeImages(written, partition))
        self._held, self._bytes = {}, 0


def _in_numbers(edits: Edits, names: Collection[str], schema: TableSchema) -> Edits:
    """The edits of some columns, with new values of the types that held images have."""
    columns = {
        name: ColumnEdit(edit.rows, numbers(stored(edit.values, schema.arrow.field(name).type)))
        for name, edit in edits.columns.items()
        if name in names
    }
    return replace(edits, columns=columns)


def _differs(before: pa.Table, edits: Edits, schema: TableSchema) -> Mask:
    """Mark the rows of which readers see another value in a column that isn't ours."""
    marks = np.zeros(before.num_rows, np.bool_)
    for name in schema.shown:
        edit = edits.columns.get(name)
        if edit is not None and name in before.column_names:
            held = before.column(name).combine_chunks().take(pa.array(edit.rows))
            marks[edit.rows] |= differing(held, edit.values)
    return marks


def _united(parts: list[KeyHashes]) -> KeyHashes:
    if not parts:
        return _NO_KEYS
    return KeyHashes(*(np.concatenate(halves) for halves in zip(*parts, strict=True)))
