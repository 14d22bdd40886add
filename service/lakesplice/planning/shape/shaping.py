"""Shaping: which of a source's columns a table has, which of them are masked, and which columns it
has in addition: computed from a row, or about its change.

It follows decoding and precedes everything else, so what is left out or masked is in no file, no
payload between tasks and no digest. A column's mask is part of its source type: if masks change,
the table sees a change of type, not other values under the same name. The same holds for the
expression of a computed column. Images before and after a change are processed in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import pyarrow as pa

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.names import column_name
from lakesplice.model.schema import COMPUTED
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.shape.computing.evaluation import evaluate, type_of
from lakesplice.planning.shape.computing.expression import Expression, columns_of
from lakesplice.planning.shape.masks import Mask, masked, masked_field
from lakesplice.planning.shape.metadata_columns import (
    MetadataContent,
    RecordOrigin,
    metadata_field,
    metadata_values,
    topic_value,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table stores of its source's rows.

    `include` and `exclude` are patterns of column names (`*`, `?`, `[…]`); an empty `include`
    stands for all. Key columns are included unless they are excluded. Of `masks` the first matching
    pattern counts. Unless `raw_dead_letters` is set, dead letters of a table with masks contain no
    bytes. `computed` has the table's columns by name, with expressions over the source's columns as
    they are there; `metadata` has columns and the part of the event that they hold. `key` names
    those of `metadata` that come first in the key, since they distinguish rows, too: they say which
    topic a row is from.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    masks: tuple[tuple[str, Mask], ...] = ()
    secret: str = field(default="", repr=False)
    raw_dead_letters: bool = False
    metadata: tuple[tuple[str, MetadataContent], ...] = ()
    computed: tuple[tuple[str, Expression], ...] = ()
    key: tuple[str, ...] = ()

    @property
    def withholds(self) -> bool:
        """Whether records, and messages about them, must not be stored."""
        return bool(self.masks) and not self.raw_dead_letters

    def takes(self, name: str, key: Iterable[str]) -> bool:
        """Whether the table has the column."""
        if _matches(name, self.exclude):
            return False
        return not self.include or name in key or _matches(name, self.include)

    def mask(self, name: str) -> Mask | None:
        """The column's mask, if it has one."""
        return next((mask for pattern, mask in self.masks if fnmatchcase(name, pattern)), None)


def shard_of(shape: Shape | None, origin: RecordOrigin) -> tuple[tuple[str, str], ...]:
    """Return the key columns, by stored name, in which all rows of a topic have one value, with
    these values; empty if the source's key alone identifies rows.
    """
    if shape is None:
        return ()
    metadata = dict(shape.metadata)
    return tuple((column_name(name), topic_value(metadata[name], origin)) for name in shape.key)


def shaped(decoded: Decoded, shape: Shape, origin: RecordOrigin) -> Decoded:
    """Return decoded records of `origin` with the images that the table stores."""
    schemas: dict[SourceSchema, SourceSchema] = {}
    blocks = []
    for block in decoded.blocks:
        schema = schemas.get(block.schema)
        if schema is None:
            schema = schemas[block.schema] = shaped_schema(block.schema, shape)
        blocks.append(_shaped(block, schema, shape, origin))
    return replace(decoded, blocks=tuple(blocks))


def shaped_schema(schema: SourceSchema, shape: Shape) -> SourceSchema:
    """Return the schema of shaped images, with the table's own columns after the source's; a column
    without a type can't be masked in this way.
    """
    taken = [column for column in schema.fields if shape.takes(column.name, schema.key)]
    fields = [
        masked_field(column, shape.mask(column.name), schema.key, shape.secret) for column in taken
    ]
    computed, lacking, problem = _computed(schema, shape)
    fields += [*computed, *(metadata_field(name, what) for name, what in shape.metadata)]
    names = {column.name for column in schema.fields}
    left_out = names - {column.name for column in taken}
    omitted = tuple(
        masked_field(column, shape.mask(column.name), schema.key, shape.secret)
        for column in schema.omitted
        if shape.takes(column.name, schema.key)
    )
    return replace(
        schema,
        # A source table without a key gives a table without one, whatever topic its rows are from.
        key=(*shape.key, *schema.key) if schema.key else (),
        fields=tuple(fields),
        left_out=schema.left_out | left_out,
        omitted=omitted,
        partial=schema.partial and bool(omitted),
        problem=_taken_name(names | {column.name for column in schema.omitted}, shape) or problem,
        lacking=lacking,
    )


def _computed(
    schema: SourceSchema, shape: Shape
) -> tuple[list[SourceField], tuple[tuple[str, str], ...], str]:
    """Return the computed columns, those that can't be computed since a column is missing, and why
    others can't.
    """
    types = {column.name: column.type for column in schema.fields}
    fields, lacking = [], []
    for name, expression in shape.computed:
        needed = list(columns_of(expression))
        absent = next((column for column in needed if column not in types), None)
        if absent is not None and absent in {column.name for column in schema.omitted}:
            why = "which this partial image lacks; let the server send whole row images"
            return [], (), f"computed column={name!r} needs column={absent!r}, {why}"
        if absent is not None:
            lacking.append((name, absent))
            continue
        untyped = next((column for column in needed if types[column] is None), None)
        if untyped is not None:
            return (
                [],
                (),
                f"computed column={name!r} needs column={untyped!r}, whose type is unknown",
            )
        try:
            kind = type_of(expression, types)
        except ConfigurationError as error:
            return [], (), f"column={name!r} can't be computed: {error}; correct shape.computed"
        fields.append(SourceField(name, kind, f"{COMPUTED}{expression}"))
    return fields, tuple(lacking), ""


def _taken_name(names: Iterable[str], shape: Shape) -> str:
    """Return which of the table's own columns has the name of a source column, if one has."""
    lower = {name.lower() for name in names}
    for name, what in shape.metadata:
        if name.lower() in lower:
            return (
                f"the source has a column of the name that metadata={what.value!r} has here,"
                f" column={name!r}; set another metadata.prefix"
            )
    for name, _ in shape.computed:
        if name.lower() in lower:
            return f"the source has a column={name!r} too; compute it under another name"
    return ""


def _shaped(
    block: ImageBlock, schema: SourceSchema, shape: Shape, origin: RecordOrigin
) -> ImageBlock:
    if schema.problem:
        return replace(block, schema=schema)  # no table takes it
    metadata = {name: metadata_values(what, block, origin) for name, what in shape.metadata}
    before, after = (
        _image(image, block.schema, schema, shape, metadata)
        for image in (block.before, block.after)
    )
    return replace(block, schema=schema, before=before, after=after)


def _image(
    image: pa.Table,
    schema: SourceSchema,
    to: SourceSchema,
    shape: Shape,
    metadata: Mapping[str, pa.Array],
) -> pa.Table:
    kinds = {column.name: column.type for column in schema.fields}
    known = {name: kind for name, kind in kinds.items() if kind is not None}
    expressions = dict(shape.computed)
    arrays = {}
    for column in to.fields:
        if column.name in metadata:
            arrays[column.name] = metadata[column.name]
        elif column.name in expressions:
            arrays[column.name] = evaluate(expressions[column.name], known, image)
        else:
            values = image.column(column.name).combine_chunks()
            mask, kind = shape.mask(column.name), kinds[column.name]
            if mask is not None and column.type is not None and kind is not None:
                values = masked(values, kind, mask, shape.secret)
            arrays[column.name] = values
    return pa.table(arrays)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
