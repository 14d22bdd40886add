"""Geometries as connectors send them, a shape and its reference system, as one value.

The shape is well-known binary (OGC 06-103r4, section 8). If it has a reference system other than 0,
its number follows the type, whose bit 29 is set then, as in PostGIS and readers that follow it. So
nothing is lost, and a value without a reference system is unchanged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Mask

# Byte order and type; in little-endian order the type's highest byte is the fifth.
_HEAD_BYTES = 5
_SYSTEM_BYTES = 4
_LITTLE, _WITH_SYSTEM = b"\x01", b"\x20"
_SYSTEM_MAX = (1 << 32) - 1
_END = (1 << 31) - 2


def geometry_members(raw: pa.Array) -> dict[str, pa.Array]:
    """Return a struct's members by name, nulls of the struct passed on."""
    return dict(zip((member.name for member in raw.type), raw.flatten(), strict=True))


def of_mysql(octets: pa.Array) -> pa.Array:
    """Return geometries as MySQL stores them, four bytes of the reference system before the shape,
    as structs of `wkb` and `srid`; too few bytes have no `wkb`.
    """
    whole = pc.greater_equal(pc.binary_length(octets), _SYSTEM_BYTES).fill_null(False)
    head = pc.if_else(whole, pc.binary_slice(octets, 0, _SYSTEM_BYTES), bytes(_SYSTEM_BYTES))
    head = head.fill_null(bytes(_SYSTEM_BYTES)).cast(pa.binary(_SYSTEM_BYTES))
    systems = np.frombuffer(head.buffers()[1], "<u4", len(head), _SYSTEM_BYTES * head.offset)
    wkb = pc.if_else(whole, pc.binary_slice(octets, _SYSTEM_BYTES, _END), None)
    members = [wkb.cast(pa.binary()), pa.array(systems.astype(np.int64))]
    return pa.StructArray.from_arrays(members, ["wkb", "srid"], mask=octets.is_null())


def extended_wkb(raw: pa.Array) -> tuple[pa.Array, Mask]:
    """Return geometries of `wkb` (binary) and `srid` (int64) as binary, and a mask of incomplete
    ones; these are null, as missing values are.
    """
    members = geometry_members(raw)
    wkb, system = members["wkb"], members["srid"].fill_null(0)
    stated = pc.not_equal(system, 0)
    beyond = pc.or_(pc.less(system, 0), pc.greater(system, _SYSTEM_MAX))
    whole = pc.and_(
        pc.equal(pc.binary_slice(wkb, 0, 1), _LITTLE),
        pc.greater_equal(pc.binary_length(wkb), _HEAD_BYTES),
    ).fill_null(False)
    wrong = pc.or_(pc.and_(stated, pc.or_(pc.invert(whole), beyond)), wkb.is_null())
    wrong = pc.and_(wrong, raw.is_valid())
    if stated.true_count:
        wkb = pc.if_else(stated, _with_system(wkb, system), wkb)
    values = pc.if_else(wrong, pa.scalar(None, pa.binary()), wkb)
    mask: Mask = wrong.to_numpy(zero_copy_only=False)
    return values, mask


def _with_system(wkb: pa.Array, system: pa.Array) -> pa.Array:
    numbers = np.ascontiguousarray(system.to_numpy(zero_copy_only=False).astype("<u4"))
    buffers = [None, pa.py_buffer(numbers)]
    octets = pa.FixedSizeBinaryArray.from_buffers(pa.binary(4), len(system), buffers)
    return pc.binary_join_element_wise(
        pc.binary_slice(wkb, 0, _HEAD_BYTES - 1),
        pa.scalar(_WITH_SYSTEM),
        octets.cast(pa.binary()),
        pc.binary_slice(wkb, _HEAD_BYTES, _END),
        pa.scalar(b""),
    )
