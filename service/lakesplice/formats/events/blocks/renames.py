"""What the source's statements say about columns besides their types: earlier and later names, and
the values that existing rows got in added columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.column_types import TypeHistory, TypeVersion
from lakesplice.model.change import above
from lakesplice.model.position import Ordering, Position
from lakesplice.model.source_schema import SourceField


def name_formerly(ledger: VerdictLedger, history: TypeHistory | None) -> None:
    """Add to each block's schema the other names of its columns, as seen from its last change.

    Changes from before and after a name passed from one column to another become separate blocks.
    """
    if history is not None:
        ledger.blocks = [
            named for block in ledger.blocks for named in _named_blocks(block, history)
        ]


def _named_blocks(block: ImageBlock, history: TypeHistory) -> Iterator[ImageBlock]:
    if block.ordering is not Ordering.BINLOG or not history.ordered:
        yield _with(block, None, history)
        return
    for part in _parts(block, history.turns):
        last = int(part.position_file.max())
        offset = int(part.position_offset[part.position_file == last].max())
        version, _ = history.at(Position(last, offset))
        yield _with(part, version, history)


def _parts(block: ImageBlock, turns: tuple[Position, ...]) -> Iterator[ImageBlock]:
    passed = np.zeros(len(block), np.int64)
    for turn in turns:
        file, offset = block.position_file, block.position_offset
        passed += ~above(turn.file, turn.offset, file, offset)
    for number in np.unique(passed):
        yield block.filter(passed == number)


def _with(block: ImageBlock, version: TypeVersion | None, history: TypeHistory) -> ImageBlock:
    """Name the block's columns as seen from a version; None if its position doesn't show which."""
    known = None if version is None or version.gap else version
    if known is not None and not (
        known.formerly
        or known.later
        or known.tenures
        or known.came
        or any(type_.fill is not None for type_ in known.columns.values())
    ):
        return block
    if known is None and not history.handed_on:
        return block
    fields, omitted = (
        tuple(_field(field, known, history) for field in part)
        for part in (block.schema.fields, block.schema.omitted)
    )
    return replace(block, schema=replace(block.schema, fields=fields, omitted=omitted))


def _field(field: SourceField, version: TypeVersion | None, history: TypeHistory) -> SourceField:
    name = field.name
    if version is None:
        return replace(field, tenures=None) if name in history.handed_on else field
    column, tenures = version.columns.get(name), version.tenures.get(name, ())
    own = (t for t in tenures if t.name == name and t.has(version.position))
    filled = column is not None and column.fill is not None and column.type == field.type
    return replace(
        field,
        fill=column.fill if column is not None and filled else field.fill,
        formerly=version.formerly.get(name, ()),
        later=version.later.get(name, ()),
        tenures=tenures,
        tenure=next(own, None),
        added_by_statement=name in version.came,
    )
