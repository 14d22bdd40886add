"""Casts: a value in another type, or null where that can't hold it exactly.

    from                          to
    whole numbers, decimals       whole numbers, decimals, double (the nearest), texts
    booleans                      whole numbers, decimals (1, 0), texts (true, false)
    texts                         whole numbers, decimals, double, dates, moments
    dates                         moments (midnight), texts (yyyy-MM-dd)
    moments                       dates (their day), texts (yyyy-MM-dd HH:mm:ss.SSSSSS)
    float                         double

Texts are read in the forms in which they are written here. In addition a number may have a sign and
leading zeros, a double an exponent, and a moment a `T` between date and time, and fewer digits of a
second or none. What has spaces around it isn't one of these.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.values.encoding import DAY_MIN
from lakesplice.model.column_values import decimal_texts
from lakesplice.model.types import WHOLE_DIGITS, WHOLE_NUMBERS, ColumnType, Primitive
from lakesplice.planning.shape.computing.moments import Pattern

_NUMBERS = (*WHOLE_NUMBERS, Primitive.DECIMAL, Primitive.BOOLEAN)
_TO = {
    Primitive.STRING: (
        *WHOLE_NUMBERS,
        Primitive.DECIMAL,
        Primitive.DOUBLE,
        Primitive.DATE,
        Primitive.TIMESTAMP,
    ),
    Primitive.DATE: (Primitive.TIMESTAMP, Primitive.STRING),
    Primitive.TIMESTAMP: (Primitive.DATE, Primitive.STRING),
    Primitive.FLOAT: (Primitive.DOUBLE,),
    **dict.fromkeys(
        _NUMBERS, (*WHOLE_NUMBERS, Primitive.DECIMAL, Primitive.DOUBLE, Primitive.STRING)
    ),
}
_DATE = Pattern.parse("yyyy-MM-dd")
_MOMENT = Pattern.parse("yyyy-MM-dd HH:mm:ss.SSSSSS")
_DOUBLE = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
_SPLIT = (
    r"^(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
    r"(?P<t>[ T](?P<h>[0-9]{2}):(?P<n>[0-9]{2}):(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,6}))?)?$"
)
_DAY_MICROSECONDS = 86_400_000_000


def check_cast(kind: ColumnType, to: ColumnType) -> None:
    """Raise `ConfigurationError` for a cast that doesn't exist."""
    if to != kind and to.kind not in _TO.get(kind.kind, ()):
        raise ConfigurationError("there is no such cast", type=kind.name, to=to.name)


def cast(values: pa.Array, kind: ColumnType, to: ColumnType) -> pa.Array:
    """Return values of `kind` as values of `to`; the head of this module says which and how."""
    if to == kind:
        return values
    if kind.kind is Primitive.FLOAT:
        return values.cast(to.arrow)
    if kind.kind is Primitive.DATE and to.kind is Primitive.TIMESTAMP:
        return values.cast(pa.timestamp("us")).view(to.arrow)
    if kind.kind is Primitive.TIMESTAMP and to.kind is Primitive.DATE:
        return _floored(values).cast(to.arrow)
    if kind.kind is Primitive.BOOLEAN and to.kind is not Primitive.STRING:
        values = values.cast(pa.int8())
    texts = values if kind.kind is Primitive.STRING else _written(values, kind)
    if to.kind in WHOLE_NUMBERS:
        exact = ColumnType(Primitive.DECIMAL, WHOLE_DIGITS[to.kind], 0)
        return _within(_decimals(texts, exact), to)
    if to.kind is Primitive.DECIMAL:
        return _decimals(texts, to)
    if to.kind is Primitive.DOUBLE:
        found = _matching(texts, _DOUBLE).cast(pa.float64())
        return pc.if_else(pc.is_inf(found), None, found)
    if to.kind is Primitive.STRING:
        return texts
    return _read_moments(texts, to)


def _written(values: pa.Array, kind: ColumnType) -> pa.Array:
    if kind.kind is Primitive.DATE:
        return _DATE.written(values)
    if kind.kind is Primitive.TIMESTAMP:
        return _MOMENT.written(values)
    if kind.kind is Primitive.DECIMAL:
        return decimal_texts(values)
    return values.cast(pa.string())


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, None)


def _decimals(texts: pa.Array, to: ColumnType) -> pa.Array:
    """Read numbers that have no more digits, before and behind the point, than the type."""
    before = to.precision - to.scale
    whole = f"0*[0-9]{{0,{before}}}"
    some = f"(0*[0-9]{{1,{before}}}|0+)" if before else "0+"
    behind = rf"\.[0-9]{{0,{to.scale}}}0*"
    digit_behind = rf"\.[0-9]{{1,{to.scale}}}0*" if to.scale else r"\.0+"
    texts = _matching(texts, rf"^[+-]?({some}({behind})?|{whole}{digit_behind})$")
    # Arrow counts zeros in front and behind as digits of its own.
    texts = pc.replace_substring_regex(texts, r"^([+-]?)\.", r"\10.")
    texts = pc.replace_substring_regex(texts, r"^([+-]?)0+([0-9])", r"\1\2")
    texts = pc.replace_substring_regex(texts, rf"^([^.]*\.[0-9]{{{to.scale}}})0+$", r"\1")
    texts = pc.replace_substring_regex(texts, r"\.$", "")
    return texts.cast(to.arrow)


def _within(values: pa.Array, to: ColumnType) -> pa.Array:
    bits = to.arrow.bit_width
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    bounds = [pa.scalar(str(bound)).cast(values.type) for bound in (low, high)]
    inside = pc.and_(pc.greater_equal(values, bounds[0]), pc.less_equal(values, bounds[1]))
    return pc.if_else(inside, values, None).cast(to.arrow)


def _floored(values: pa.Array) -> pa.Array:
    micros = values.cast(pa.int64())
    days = np.floor_divide(micros.fill_null(0).to_numpy(), _DAY_MICROSECONDS).astype(np.int32)
    return pa.array(days, pa.int32(), mask=np.asarray(values.is_null()))


def _read_moments(texts: pa.Array, to: ColumnType) -> pa.Array:
    found = pc.extract_regex(texts, _SPLIT)
    fields = {name: pc.struct_field(found, name) for name in "ymdtf"}
    timed = np.asarray(pc.not_equal(fields["t"], "").fill_null(False))
    numbers = {name: _number(pc.struct_field(found, name)) for name in "ymdhns"}
    micros = _number(pc.utf8_rpad(fields["f"], 6, "0"))
    months = ((numbers["y"] - 1970) * 12 + numbers["m"] - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]").astype(np.int64) + numbers["d"] - 1
    dates = pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())
    # A thirteenth month or a thirtieth of February is written otherwise than it was read.
    same = pc.equal(_DATE.written(dates), pc.utf8_slice_codeunits(texts, 0, 10))
    fine = np.asarray(same.fill_null(False)) & np.asarray(found.is_valid())
    # The source has no year 0 either, and most readers don't.
    fine &= days >= DAY_MIN
    if to.kind is Primitive.DATE:
        return pc.if_else(pa.array(fine & ~timed), dates, None)
    fine &= (numbers["h"] < 24) & (numbers["n"] < 60) & (numbers["s"] < 60) & timed
    seconds = (numbers["h"] * 60 + numbers["n"]) * 60 + numbers["s"]
    whole = days * _DAY_MICROSECONDS + seconds * 1_000_000 + micros
    return pa.array(whole, pa.int64(), mask=~fine).cast(to.arrow)


def _number(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(
        pc.if_else(pc.equal(texts, ""), "0", texts).fill_null("0").cast(pa.int64()).to_numpy()
    )
