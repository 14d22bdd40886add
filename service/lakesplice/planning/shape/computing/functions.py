"""The functions that expressions may call: what each takes, gives and does.

    year month day (moment)             hour minute second (timestamp)         integers
    date_format(moment, 'pattern')      as `moments.py` says                   text
    substring(text, from[, to])         characters [from, to), from 0          text
    truncate(number, width)             the multiple of width at or below it   long
    truncate(text, width)               its first characters                   text
    cast(value, type)                   as `casts.py` says                     the type
    upper lower trim (text)             trim: of white space at both ends      text
    concat(text, text, …)               null if one of them is                 text
    coalesce(value, value, …)           the first that is not null             their type

If an argument is null, the result is null, except for `coalesce`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import ConfigurationError
from lakesplice.model.types import WHOLE_NUMBERS, ColumnType, Primitive
from lakesplice.planning.shape.computing.casts import cast, check_cast
from lakesplice.planning.shape.computing.moments import Pattern, part

Constant: TypeAlias = int | Pattern | ColumnType
Types: TypeAlias = Sequence[ColumnType | None]

TEXT = ColumnType(Primitive.STRING)
LONG = ColumnType(Primitive.LONG)
_INTEGER = ColumnType(Primitive.INTEGER)


class ArgumentKind(Enum):
    """What an argument may be: a value of some kinds, or a constant."""

    MOMENT = "a date or a timestamp"
    TIMESTAMP = "a timestamp"
    STRING = "a text"
    WHOLE_OR_STRING = "a whole number or a text"
    VALUE = "a value"
    COUNT = "a number from 0"
    WIDTH = "a number from 1"
    PATTERN = "a date's pattern in quotes"
    TYPE = "a type, such as long or decimal(12,2)"


KINDS: dict[ArgumentKind, tuple[Primitive, ...]] = {
    ArgumentKind.MOMENT: (Primitive.DATE, Primitive.TIMESTAMP),
    ArgumentKind.TIMESTAMP: (Primitive.TIMESTAMP,),
    ArgumentKind.STRING: (Primitive.STRING,),
    ArgumentKind.WHOLE_OR_STRING: (*WHOLE_NUMBERS, Primitive.STRING),
    ArgumentKind.VALUE: tuple(Primitive),
}


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A call's arguments: values with their types, and constants, each in order."""

    values: Sequence[pa.Array]
    types: Sequence[ColumnType]
    constants: Sequence[Constant]
    result: ColumnType


@dataclass(frozen=True, slots=True)
class Function:
    """The arguments of a function; the last `optional` ones may be missing, and the last one may be
    repeated if it `repeats`.

    `result` returns the type of the result, None if an argument's type is unknown; it raises
    `ConfigurationError` for arguments that don't fit together.
    """

    takes: tuple[ArgumentKind, ...]
    result: Callable[[Types, Sequence[Constant]], ColumnType | None]
    evaluate: Callable[[CallArguments], pa.Array]
    optional: int = 0
    repeats: bool = False


def _always(kind: ColumnType) -> Callable[[Types, Sequence[Constant]], ColumnType]:
    return lambda _types, _constants: kind


def _part(of: Callable[[pa.Array], pa.Array], takes: ArgumentKind) -> Function:
    return Function((takes,), _always(_INTEGER), lambda given: part(given.values[0], of))


def _text(of: Callable[[pa.Array], pa.Array]) -> Function:
    return Function((ArgumentKind.STRING,), _always(TEXT), lambda given: of(given.values[0]))


def _formatted(types: Types, constants: Sequence[Any]) -> ColumnType:
    if types[0] is not None:
        constants[0].check(types[0])
    return TEXT


def _format(given: CallArguments) -> pa.Array:
    pattern: Any = given.constants[0]
    return pattern.written(given.values[0])


def _substring(given: CallArguments) -> pa.Array:
    start, *stop = given.constants
    return pc.utf8_slice_codeunits(given.values[0], start, *(stop or (None,)))


def _truncated(types: Types, _constants: Sequence[Constant]) -> ColumnType | None:
    if types[0] is None:
        return None
    return TEXT if types[0].kind is Primitive.STRING else LONG


def _truncate(given: CallArguments) -> pa.Array:
    (values,), (width,) = given.values, given.constants
    assert isinstance(width, int), "the parameter is a number"
    if given.result == TEXT:
        return pc.utf8_slice_codeunits(values, 0, width)
    numbers = values.cast(pa.int64())
    plain = numbers.fill_null(0).to_numpy()
    below = plain - np.mod(plain, np.int64(width))  # of the sign of the width: never above
    return pa.array(below, mask=np.asarray(numbers.is_null()) | (below > plain))


def _cast(types: Types, constants: Sequence[Any]) -> ColumnType:
    to: ColumnType = constants[0]
    if types[0] is not None:
        check_cast(types[0], to)
    return to


def _common(types: Types, _constants: Sequence[Constant]) -> ColumnType | None:
    known = {kind for kind in types if kind is not None}
    if len(known) > 1 and all(kind.kind in WHOLE_NUMBERS for kind in known):
        return LONG
    if len(known) > 1:
        names = sorted(kind.name for kind in known)
        raise ConfigurationError("these have no type in common; cast them", types=names)
    return next(iter(known)) if None not in types else None


def _coalesce(given: CallArguments) -> pa.Array:
    return pc.coalesce(*(values.cast(given.result.arrow) for values in given.values))


FUNCTIONS: dict[str, Function] = {
    "year": _part(pc.year, ArgumentKind.MOMENT),
    "month": _part(pc.month, ArgumentKind.MOMENT),
    "day": _part(pc.day, ArgumentKind.MOMENT),
    "hour": _part(pc.hour, ArgumentKind.TIMESTAMP),
    "minute": _part(pc.minute, ArgumentKind.TIMESTAMP),
    "second": _part(pc.second, ArgumentKind.TIMESTAMP),
    "date_format": Function((ArgumentKind.MOMENT, ArgumentKind.PATTERN), _formatted, _format),
    "substring": Function(
        (ArgumentKind.STRING, ArgumentKind.COUNT, ArgumentKind.COUNT),
        _always(TEXT),
        _substring,
        optional=1,
    ),
    "truncate": Function((ArgumentKind.WHOLE_OR_STRING, ArgumentKind.WIDTH), _truncated, _truncate),
    "cast": Function(
        (ArgumentKind.VALUE, ArgumentKind.TYPE),
        _cast,
        lambda given: cast(given.values[0], given.types[0], given.result),
    ),
    "upper": _text(pc.utf8_upper),
    "lower": _text(pc.utf8_lower),
    "trim": _text(pc.utf8_trim_whitespace),
    "concat": Function(
        (ArgumentKind.STRING, ArgumentKind.STRING),
        _always(TEXT),
        lambda given: pc.binary_join_element_wise(*given.values, ""),
        repeats=True,
    ),
    "coalesce": Function(
        (ArgumentKind.VALUE, ArgumentKind.VALUE), _common, _coalesce, repeats=True
    ),
}
