"""Conversions of bytes: base64, decimals as two's complement, and geometries."""

from __future__ import annotations

import pyarrow as pa

from lakesplice.formats.events.cells.binary import bytes_of_latin1, decode_base64, padded
from lakesplice.formats.events.cells.column import Column, column_of, wrong_type
from lakesplice.formats.events.cells.decimals import (
    decimals_from_bytes,
    digits_from_bytes,
)
from lakesplice.formats.events.cells.geometry import extended_wkb, geometry_members, of_mysql
from lakesplice.formats.events.cells.short_decimals import short_decimals
from lakesplice.formats.events.values.encoding import (
    Cell,
)
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask


def octets_of(values: pa.Array, wrong: Mask | None, width: int) -> Column:
    """Add to the bytes of a BINARY(n) the zeros that a source left out; longer values are wrong."""
    values, longer = padded(values, width)
    return Column(values, (*wrong_type(wrong), *column_of(values, longer).flaws))


def base64(raw: pa.Array, cell: Cell) -> Column:
    """Bytes in base64."""
    return octets_of(*decode_base64(raw), cell.width)


def decimal_base64(raw: pa.Array, cell: Cell) -> Column:
    """A decimal as the base64 of its unscaled value, big-endian two's complement."""
    no_base64 = None
    decimals = short_decimals(raw, cell.type)
    if decimals is None:
        unscaled, no_base64 = decode_base64(raw)
        decimals = decimals_from_bytes(unscaled, cell.type)
    values, beyond = decimals
    flaws = [(beyond, DeadReason.OUT_OF_RANGE)] if beyond.any() else []
    if no_base64 is not None:
        flaws.append((no_base64, DeadReason.WRONG_TYPE))
    return Column(values, tuple(flaws))


def wide_decimal_bytes(raw: pa.Array, cell: Cell) -> Column:
    """A decimal too wide for a decimal column: its digits as text."""
    precision, scale = map(int, cell.source_type.rpartition("(")[2].rstrip(")").split(","))
    values, wrong = digits_from_bytes(raw, scale, precision)
    return column_of(values, wrong if wrong.any() else None)


def wide_decimal_base64(raw: pa.Array, cell: Cell) -> Column:
    """The same in base64."""
    unscaled, no_base64 = decode_base64(raw)
    wide = wide_decimal_bytes(unscaled, cell)
    return Column(wide.values, (*wrong_type(no_base64), *wide.flaws))


def geometry(raw: pa.Array, cell: Cell) -> Column:
    """A struct of base64 and reference system becomes extended WKB."""
    members = geometry_members(raw)
    wkb, no_base64 = decode_base64(members["wkb"])
    plain = [wkb, members["srid"]]
    shaped = geometry_bytes(
        pa.StructArray.from_arrays(plain, ["wkb", "srid"], mask=raw.is_null()), cell
    )
    return Column(shaped.values, (*wrong_type(no_base64), *shaped.flaws))


def geometry_bytes(raw: pa.Array, _: Cell) -> Column:
    """A struct of WKB and reference system becomes extended WKB."""
    values, wrong = extended_wkb(raw)
    return column_of(values, wrong if wrong.any() else None, DeadReason.WRONG_TYPE)


def geometry_text(raw: pa.Array, cell: Cell) -> Column:
    """MySQL's own bytes of a geometry, sent as characters of Latin-1."""
    octets, wrong = bytes_of_latin1(raw)
    shaped = geometry_bytes(of_mysql(octets), cell)
    return Column(shaped.values, (*wrong_type(wrong), *shaped.flaws))


def decimal_bytes(raw: pa.Array, cell: Cell) -> Column:
    """A decimal as its unscaled value, big-endian two's complement."""
    values, beyond = decimals_from_bytes(raw, cell.type)
    return column_of(values, beyond if beyond.any() else None)
