"""The order of a column's bounds, as statistics and the column index encode them.

Parquet's type-defined order (parquet.thrift, `ColumnOrder`): signed or unsigned numbers by the
logical type, byte arrays as unsigned bytes, decimals in byte arrays as big-endian numbers. Types
for which readers don't agree on an order have no bounds here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lakesplice.splicing.structures.enums import BoundaryOrder, PhysicalType
from lakesplice.splicing.structures.footer import Leaf
from lakesplice.splicing.thrift.compact import Struct

Key = Callable[[bytes], Any]

_CONVERTED, _LOGICAL = 6, 10  # fields of SchemaElement
_CONVERTED_DECIMAL, _CONVERTED_INTERVAL = 5, 21
_CONVERTED_UNSIGNED = frozenset((11, 12, 13, 14))
_LOGICAL_DECIMAL, _LOGICAL_INTEGER, _LOGICAL_FLOAT16 = 5, 10, 15
_LOGICAL_UNORDERED = frozenset((16, 17, 18))  # variant, geometry, geography
_NUMBERS = {
    PhysicalType.BOOLEAN: "?",
    PhysicalType.INT32: "<i4",
    PhysicalType.INT64: "<i8",
    PhysicalType.FLOAT: "<f4",
    PhysicalType.DOUBLE: "<f8",
}


def numbers(leaf: Leaf) -> np.dtype[Any] | None:
    """Return the type of bounds that are plain numbers; None for byte arrays."""
    code = _NUMBERS.get(PhysicalType(leaf.physical)) if leaf.physical in _NUMBERS else None
    if code is not None:
        return np.dtype(code.replace("i", "u") if _unsigned(leaf) else code)
    return np.dtype("<f2") if _LOGICAL_FLOAT16 in _logical(leaf) else None


def order_key(leaf: Leaf) -> Key | None:
    """Return the sort key of the column's bounds; None if the column has no order."""
    kind = numbers(leaf)
    if kind is not None:
        return lambda bound: np.frombuffer(bound, kind)[0]
    converted = leaf.element.get(_CONVERTED)
    if leaf.physical == PhysicalType.INT96 or converted == _CONVERTED_INTERVAL:
        return None
    if not _LOGICAL_UNORDERED.isdisjoint(_logical(leaf)):
        return None
    if is_decimal(leaf):
        return lambda bound: int.from_bytes(bound, "big", signed=True)
    return bytes


def is_decimal(leaf: Leaf) -> bool:
    """Return whether the column's values are decimals, however they are stored."""
    return leaf.element.get(_CONVERTED) == _CONVERTED_DECIMAL or _LOGICAL_DECIMAL in _logical(leaf)


def extremes(
    leaf: Leaf, lows: Sequence[bytes], highs: Sequence[bytes]
) -> tuple[bytes, bytes] | None:
    """Return the least and the greatest bound of the pages that have values; None if unordered."""
    key = order_key(leaf)
    if key is None or not lows:
        return None
    kind = numbers(leaf)
    if kind is None:
        return min(lows, key=key), max(highs, key=key)
    low, high = _array(lows, kind), _array(highs, kind)
    if np.isnan(low).any() or np.isnan(high).any():
        return None
    return lows[int(np.argmin(low))], highs[int(np.argmax(high))]


def credible(leaf: Leaf, lows: Sequence[bytes], highs: Sequence[bytes]) -> bool:
    """Return whether these bounds are possible for pages with values: each is a value of the
    column's type, and no lower bound is above its upper bound.
    """
    sizes, kind = {len(bound) for bound in (*lows, *highs)}, numbers(leaf)
    if kind is not None:
        fitting = sizes <= {kind.itemsize}
        return fitting and not (_array(lows, kind) > _array(highs, kind)).any()
    key = order_key(leaf)
    if not sizes or key is None:
        return True
    length = leaf.type_length if leaf.physical == PhysicalType.FIXED_LEN_BYTE_ARRAY else None
    # Byte arrays may have been shortened; a number without some of its bytes is another number.
    if max(sizes) > (length or max(sizes)) or (is_decimal(leaf) and min(sizes) < (length or 1)):
        return False
    return all(key(low) <= key(high) for low, high in zip(lows, highs, strict=True))


def boundary_order(leaf: Leaf, lows: Sequence[bytes], highs: Sequence[bytes]) -> BoundaryOrder:
    """Return whether the bounds of pages with values ascend or descend; byte arrays count as
    unordered.
    """
    kind = numbers(leaf)
    if kind is None or not lows:
        return BoundaryOrder.UNORDERED
    low, high = _array(lows, kind), _array(highs, kind)
    if (low[1:] >= low[:-1]).all() and (high[1:] >= high[:-1]).all():
        return BoundaryOrder.ASCENDING
    if (low[1:] <= low[:-1]).all() and (high[1:] <= high[:-1]).all():
        return BoundaryOrder.DESCENDING
    return BoundaryOrder.UNORDERED


def _array(bounds: Sequence[bytes], kind: np.dtype[Any]) -> Any:
    return np.frombuffer(b"".join(bounds), kind)


def _unsigned(leaf: Leaf) -> bool:
    if leaf.physical not in (PhysicalType.INT32, PhysicalType.INT64):
        return False
    if leaf.element.get(_CONVERTED) in _CONVERTED_UNSIGNED:
        return True
    logical = leaf.element.get(_LOGICAL)
    integer = logical.get(_LOGICAL_INTEGER) if isinstance(logical, Struct) else None
    return isinstance(integer, Struct) and integer.get(2) is False


def _logical(leaf: Leaf) -> frozenset[int]:
    logical = leaf.element.get(_LOGICAL)
    return frozenset(logical.fields) if isinstance(logical, Struct) else frozenset()
