"""Values that an event marks as unavailable: Debezium writes a placeholder text in their place.

Such a column is not part of the row image. The row's other columns go into a separate block, whose
schema says what it lacks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.blocks.builder import mask_of
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.arrays import Mask
from lakesplice.model.change import Op
from lakesplice.model.types import Primitive


def without_unavailable(decoded: Decoded, placeholder: bytes) -> Decoded:
    """Return decoded records without the columns that have the placeholder.

    A before-image with the placeholder counts as missing.
    """
    blocks = [part for block in decoded.blocks for part in _split(block, placeholder)]
    return replace(decoded, blocks=tuple(blocks))


def _split(block: ImageBlock, placeholder: bytes) -> list[ImageBlock]:
    absent: dict[str, Mask] = {}
    unknown_before = np.zeros(len(block), np.bool_)
    for field in block.schema.fields:
        if field.type is None or field.type.kind not in (Primitive.STRING, Primitive.BINARY):
            continue
        unknown_before |= _holds(block.before.column(field.name), placeholder)
        found = _holds(block.after.column(field.name), placeholder) & block.after_present
        if found.any():
            absent[field.name] = found
    unknown_before &= block.before_present & (block.op != Op.DELETE)
    if unknown_before.any():
        block = replace(block, before_present=block.before_present & ~unknown_before)
    if not absent:
        return [block]
    patterns = np.column_stack(list(absent.values()))
    kinds, kind_of = np.unique(patterns, axis=0, return_inverse=True)
    kind_of = kind_of.reshape(-1)
    return [
        _without(
            block.filter(kind_of == at), [n for n, gone in zip(absent, kind, strict=True) if gone]
        )
        for at, kind in enumerate(kinds)
    ]


def _holds(column: pa.ChunkedArray, placeholder: bytes) -> Mask:
    text = pa.types.is_string(column.type)
    wanted = pa.scalar(placeholder.decode() if text else placeholder, column.type)
    return mask_of(pc.equal(column, wanted).fill_null(False).combine_chunks())


def _without(block: ImageBlock, names: list[str]) -> ImageBlock:
    if not names:
        return block
    fields = tuple(field for field in block.schema.fields if field.name not in names)
    omitted = tuple(field for field in block.schema.fields if field.name in names)
    schema = replace(block.schema, fields=fields, omitted=omitted, partial=True)
    before, after = (image.drop_columns(names) for image in (block.before, block.after))
    return replace(block, schema=schema, before=before, after=after)
