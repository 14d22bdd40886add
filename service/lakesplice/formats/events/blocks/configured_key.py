"""Configured keys: columns that identify the rows of a table without a key of its own.

The source promises nothing about them, so the values of the key's columns are checked row by row: a
null makes a dead letter. An update that changes them, if the format has the row before, is a delete
of the old key and a create of the new one, as with a source's own key.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.builder import mask_of
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.refusals import DeadLetters, DeadReason
from lakesplice.model.arrays import Mask
from lakesplice.model.change import Op


def with_key(decoded: Decoded, key: tuple[str, ...]) -> Decoded:
    """Return decoded records under another key.

    A record with a null in the key of a row becomes a dead letter as a whole. Blocks whose rows
    lack a column of the key get it all the same: the table then reports what is missing.
    """
    blocks, dead = [], dict[int, str]()
    for block in decoded.blocks:
        if not set(key) <= set(block.after.column_names):
            blocks.append(replace(block, schema=replace(block.schema, key=key)))
            continue
        before, after = (
            {n: _one_array(image, n) for n in key} for image in (block.before, block.after)
        )
        compared = (block.op == Op.UPDATE) & block.before_present
        moved = np.zeros(len(block), np.bool_)
        for name in key:
            was, is_ = before[name], after[name]
            for column, present in ((was, block.before_present), (is_, block.after_present)):
                for row in np.flatnonzero(mask_of(column.is_null()) & present).tolist():
                    dead.setdefault(int(block.rows[row]), name)
            moved |= mask_of(pc.not_equal(was, is_).fill_null(False))
        with_its_key = replace(block, schema=replace(block.schema, key=key))
        blocks.append(with_its_key.moved(moved & compared))
    if not dead:
        return replace(decoded, blocks=tuple(blocks))
    kept = (_without(block, dead) for block in blocks)
    return replace(
        decoded,
        blocks=tuple(block for block in kept if len(block)),
        dead=_with_letters(decoded.dead, dead),
    )


def _one_array(image: pa.Table, name: str) -> pa.Array:
    column = image.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _without(block: ImageBlock, dead: dict[int, str]) -> ImageBlock:
    spoilt: Mask = np.isin(block.rows, np.fromiter(dead, np.int64))
    return block.filter(~spoilt) if spoilt.any() else block


def _with_letters(letters: DeadLetters, dead: dict[int, str]) -> DeadLetters:
    found = {
        int(row): (reason, detail)
        for row, reason, detail in zip(letters.rows, letters.reason, letters.detail, strict=True)
    }
    for row, name in dead.items():
        found[row] = (str(DeadReason.MISSING_KEY), f"the key column {name!r} is null in the row")
    rows = sorted(found)
    return DeadLetters(
        np.array(rows, np.int64),
        tuple(found[row][0] for row in rows),
        tuple(found[row][1] for row in rows),
    )
