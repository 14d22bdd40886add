"""Rows that move to another partition are marked as deleted at their former address, in one commit.

Other engines read base files only. A row that moves is in a new base file at once, so the base file
that it leaves is rewritten at once, too. The delta also has the delete, for our own readers. When
it is compacted it changes nothing, since the file has the row deleted at the same position.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import KeyHashes
from lakesplice.model.change import Op
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import IS_DELETED, OP
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.row_images import live
from lakesplice.table.files.base_files import read_rows
from lakesplice.table.files.change_images import ImageWriter
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.table.protocol.new_files import ChangeImages, NewFile
from lakesplice.table.protocol.ports import Entropy, Store
from lakesplice.table.upkeep.compact import rewrite_with


@dataclass(frozen=True)
class VacatedFiles:
    """The next versions of files that rows leave, by their paths, and the images of all that the
    commit changes, None if the table has no change feed.
    """

    replaced: Mapping[str, NewFile]
    images: tuple[ChangeImages, ...] | None


def with_moved_rows_deleted(
    store: Store,
    manifest: Manifest,
    deltas: Sequence[DeltaRef],
    vacated: Collection[int],
    entropy: Entropy,
    new: Sequence[NewFile] = (),
) -> VacatedFiles:
    """Rewrite the base files of the file groups `vacated` with the deletes that new deltas have for
    them; `new` are the base files that come with the same commit.

    Groups that are no longer live are skipped. Blocks; raises as `compact_files`.
    """
    schema = manifest.schema
    images = None
    if manifest.feed is not None:
        images = ImageWriter(store, schema, entropy, _live_keys(store, new, schema))
    files = [
        file
        for file in manifest.files.values()
        if any(segment.group in vacated for segment in file.segments)
    ]
    if not files:
        return VacatedFiles({}, None if images is None else ())
    changes = read_waiting(store, deltas, schema, set(vacated))
    deletes = changes.filter(pc.equal(changes.column(OP), int(Op.DELETE)))
    replaced, _ = rewrite_with(
        store, manifest, files, deletes, best_rewriter(), entropy, images=images
    )
    with_images = None if images is None else _with_added(images, new, replaced)
    return VacatedFiles(replaced, with_images)


def _with_added(
    images: ImageWriter, new: Sequence[NewFile], replaced: Mapping[str, NewFile]
) -> tuple[ChangeImages, ...]:
    """Where a commit has images, readers of the feed see no other row that it adds."""
    if not replaced:
        return ()
    for file in new:
        images.added(file)
    return images.finish()


def _live_keys(store: Store, files: Sequence[NewFile], schema: TableSchema) -> KeyHashes:
    """Return the keys of the rows of new files that aren't deleted."""
    names = [*schema.key, IS_DELETED]
    none = schema.arrow.empty_table().select(names)
    bases = (new.base for new in files)
    rows = pa.concat_tables([none, *read_rows(store, bases, schema, names)])
    return key_hash(rows.filter(pa.array(live(rows))), schema)
