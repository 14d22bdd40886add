"""Names that columns had before and got since, where the source told of renames."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.formats.events.ledger import Ledger
from lakesplice.formats.events.typed import TypeHistory
from lakesplice.formats.events.values import ImageBlock
from lakesplice.model.position import Ordering, Position


def name_formerly(ledger: Ledger, history: TypeHistory | None) -> None:
    """Note in each block's schema which other names its columns had, seen from its last change."""
    if history is not None and history.ordered:
        ledger.blocks = [_named(block, history) for block in ledger.blocks]


def _named(block: ImageBlock, history: TypeHistory) -> ImageBlock:
    if block.ordering is not Ordering.BINLOG:
        return block
    last = int(block.position_file.max())
    offset = int(block.position_offset[block.position_file == last].max())
    version, _ = history.at(Position(last, offset))
    if not version.formerly and not version.later:
        return block
    fields = tuple(
        replace(
            field,
            formerly=version.formerly.get(field.name, ()),
            later=version.later.get(field.name, ()),
        )
        for field in block.schema.fields
    )
    return replace(block, schema=replace(block.schema, fields=fields))
