"""Adds a column to a file's schema or removes one, and corrects everything in the footer that
numbers columns.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.structures.footer import Footer, KeyValue, Leaf, RowGroup
from lakesplice.splicing.thrift.compact import EMPTY, Struct, WireType

_NAME, _CHILDREN = 4, 5  # fields of SchemaElement
ARROW_SCHEMA = b"ARROW:schema"
# It lists the columns too; Spark can read the file without it.
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_BY_TYPE = Struct({1: (WireType.STRUCT, EMPTY)})


def inserted(footer: Footer, at: int, leaf: Leaf, field: pa.Field) -> Footer:
    """Return the footer with a flat column before the column `at`; chunks are left as they are.

    Raises `UsageError` if a column has that name already.
    """
    _flat_only(footer)
    if field.name in footer.columns:
        raise UsageError("the file has a column of that name", column=field.name)
    schema = [*footer.schema]
    schema.insert(at + 1, leaf.element.replaced({_NAME: (WireType.BINARY, field.name.encode())}))
    orders = footer.column_orders
    if orders is not None:
        orders = (*orders[:at], _BY_TYPE, *orders[at:])
    return replace(
        footer,
        schema=_counted(schema),
        column_orders=orders,
        key_values=_edited(footer, lambda found: found.insert(at, field)),
    )


def removed(footer: Footer, at: int) -> Footer:
    """Return the footer without the column `at`; chunks are left as they are."""
    _flat_only(footer)
    schema = [*footer.schema]
    del schema[at + 1]
    orders = footer.column_orders
    return replace(
        footer,
        schema=_counted(schema),
        column_orders=None if orders is None else (*orders[:at], *orders[at + 1 :]),
        key_values=_edited(footer, lambda found: found.remove(at)),
    )


def renumbered(group: RowGroup, numbers: Mapping[int, int]) -> RowGroup:
    """Return a row group whose sort order has the columns' new `numbers`; the order ends before the
    first column without a new number.
    """
    order = group.sorting_columns
    if order is None:
        return group
    kept = []
    for column in order:
        if column.column not in numbers:
            break
        kept.append(replace(column, column=numbers[column.column]))
    return replace(group, sorting_columns=tuple(kept) or None)


def column_of(footer: Footer, name: str, path: str) -> int:
    """Return the number of a flat column; raises `UsageError` if none or two have that name."""
    refuse_doubles(footer, (name,), path)
    for leaf in footer.leaves:
        if leaf.path == (name,):
            return leaf.column
    raise UsageError("the file has no such flat column", path=path, column=name)


def refuse_doubles(footer: Footer, names: Iterable[str], path: str) -> None:
    """Raise `UsageError` if several columns of the file `path` have one of the names."""
    double = [name for name in names if footer.columns.count(name) > 1]
    if double:
        raise UsageError(
            "the file has several columns of one name; rename all but one", path=path, names=double
        )


def _counted(schema: list[Struct]) -> tuple[Struct, ...]:
    root = schema[0].replaced({_CHILDREN: (WireType.I32, len(schema) - 1)})
    return (root, *schema[1:])


def _flat_only(footer: Footer) -> None:
    if not all(leaf.flat for leaf in footer.leaves):
        raise UnsupportedError(
            "columns of a file with nested ones can't be added or dropped; rewrite the file",
            reason=str(Reason.NESTED),
        )


def _edited(footer: Footer, edit: Callable[[pa.Schema], pa.Schema]) -> tuple[KeyValue, ...] | None:
    if footer.key_values is None:
        return None
    kept: list[KeyValue] = []
    for key, value in footer.key_values:
        if key == ARROW_SCHEMA and value is not None:
            schema = edit(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value))))
            kept.append((key, base64.b64encode(schema.serialize().to_pybytes())))
        elif key != _SPARK_SCHEMA:
            kept.append((key, value))
    return tuple(kept)
