"""Pruning: partitions in which no row can match a filter.

A live row has the values of its file's partition in every version, also with its waiting changes
applied: a row that gets others is moved in the same commit. Deleted rows may have other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import product
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakesplice.model.address import Partition
from lakesplice.model.schema import TableSchema
from lakesplice.model.types import Primitive
from lakesplice.planning.filtering.filters import Filter, stored_names


def partitions_to_read(
    condition: Filter, schema: TableSchema, partitions: Iterable[Partition]
) -> frozenset[Partition]:
    """Return the partitions that may have a live row which matches. A partition without one may be
    among them, and no partition with one is left out.
    """
    if not condition.columns & set(schema.partitioned_by):
        return frozenset(partitions)
    names = stored_names(schema)
    layout = pa.schema([schema.arrow.field(s).with_name(n) for n, s in names.items()])
    known = [
        (partition, values)
        for partition in set(partitions)
        for values in _knowledge(schema, partition, names)
    ]
    # Arrow decides, as for the folders of a data set; nothing is opened. What would be the
    # content of a file is its number.
    files = ds.ParquetFileFormat()
    fragments = [
        files.make_fragment(pa.py_buffer(str(number).encode()), partition_expression=values)
        for number, (_, values) in enumerate(known)
    ]
    found = ds.FileSystemDataset(fragments, layout, files)
    try:
        left = list(found.get_fragments(condition.expression))
    except pa.ArrowInvalid:  # it fails on a partition's value, as by a division by zero
        return frozenset(partition for partition, _ in known)
    return frozenset(known[int(one.buffer.to_pybytes())][0] for one in left)


def _knowledge(
    schema: TableSchema, partition: Partition, names: dict[str, str]
) -> Iterator[pc.Expression]:
    """Yield what may be known of all live rows of a partition: a null in the log is null or an
    empty text.
    """
    choices = []
    for stored, text in zip(schema.partitioned_by, partition, strict=True):
        own = [ds.field(name) for name, of in names.items() if of == stored]
        column = next(column for column in schema.columns if column.name == stored)
        if text is None:
            empty = [pa.scalar("")] if column.type.kind is Primitive.STRING else []
            values = [None, *empty]
        else:
            values = [pa.scalar(text).cast(column.type.arrow)]
        choices.append(
            [reduce(and_, [f.is_null() if v is None else f == v for f in own]) for v in values]
        )
    for chosen in product(*choices):
        yield reduce(and_, chosen)
