"""The types of expressions, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakesplice.errors import ConfigurationError, LakespliceError
from lakesplice.model.types import ColumnType
from lakesplice.planning.shape.computing.expression import Call, Expression, Literal, Name
from lakesplice.planning.shape.computing.functions import (
    FUNCTIONS,
    KINDS,
    LONG,
    TEXT,
    ArgumentKind,
    CallArguments,
    Constant,
    Function,
)
from lakesplice.planning.shape.computing.moments import Pattern

Columns = Mapping[str, ColumnType | None]


def type_of(expression: Expression, columns: Columns | None = None) -> ColumnType | None:
    """Return an expression's type over the columns of a table; None if `columns`, or a column's
    type, is unknown.

    `ConfigurationError` if a function or column doesn't exist, or an argument doesn't fit the
    function. Without `columns` only errors that don't depend on them are found.
    """
    if isinstance(expression, Literal):
        return TEXT if isinstance(expression.value, str) else LONG
    if isinstance(expression, Name):
        if columns is None:
            return None
        if expression.name not in columns:
            raise ConfigurationError("the source has no such column", column=expression.name)
        return columns[expression.name]
    function = _function(expression)
    values, constants = _arguments(expression, function)
    types = []
    for argument, takes in values:
        found = type_of(argument, columns)
        if found is not None and found.kind not in KINDS[takes]:
            raise ConfigurationError(
                f"{expression.function} takes {takes.value} here",
                argument=str(argument),
                type=found.name,
            )
        types.append(found)
    return function.result(types, constants)


def evaluate(
    expression: Expression, columns: Mapping[str, ColumnType], image: pa.Table
) -> pa.Array:
    """Return an expression's value for every row of an image whose columns have these types.

    The expression must have passed `type_of` for them.
    """
    if isinstance(expression, Literal):
        kind = TEXT if isinstance(expression.value, str) else LONG
        return pa.repeat(pa.scalar(expression.value, kind.arrow), image.num_rows)
    if isinstance(expression, Name):
        return image.column(expression.name).combine_chunks()
    function = _function(expression)
    values, constants = _arguments(expression, function)
    types = [_known_type(argument, columns) for argument, _ in values]
    arrays = [evaluate(argument, columns, image) for argument, _ in values]
    result = _known_type(expression, columns)
    return function.evaluate(CallArguments(arrays, types, constants, result))


def _known_type(expression: Expression, columns: Mapping[str, ColumnType]) -> ColumnType:
    found = type_of(expression, columns)
    assert found is not None, "every column's type is known"
    return found


def _function(call: Call) -> Function:
    function = FUNCTIONS.get(call.function)
    if function is None:
        known = ", ".join(FUNCTIONS)
        raise ConfigurationError(f"no such function; known: {known}", function=call.function)
    return function


def _arguments(
    call: Call, function: Function
) -> tuple[list[tuple[Expression, ArgumentKind]], list[Constant]]:
    """Return the values of a call with their expected kinds, and its constants."""
    takes, given = function.takes, call.arguments
    fewest = len(takes) - function.optional
    if len(given) < fewest or (len(given) > len(takes) and not function.repeats):
        described = ", ".join(one.value for one in takes)
        raise ConfigurationError(f"{call.function} takes {described}", given=len(given))
    values: list[tuple[Expression, ArgumentKind]] = []
    constants: list[Constant] = []
    for at, argument in enumerate(given):
        one = takes[min(at, len(takes) - 1)]
        if one in KINDS:
            values.append((argument, one))
        else:
            constants.append(_constant(call, argument, one))
    _check_range(call, constants)
    return values, constants


def _constant(call: Call, argument: Expression, takes: ArgumentKind) -> Constant:
    value = argument.value if isinstance(argument, Literal) else None
    if takes is ArgumentKind.PATTERN and isinstance(value, str):
        return Pattern.parse(value)
    if takes in (ArgumentKind.COUNT, ArgumentKind.WIDTH) and isinstance(value, int):
        if value >= (takes is ArgumentKind.WIDTH):
            return value
    elif takes is ArgumentKind.TYPE and not isinstance(argument, Literal):
        try:
            return ColumnType.parse(str(argument))
        except LakespliceError as error:
            raise ConfigurationError(error.message, type=str(argument)) from None
    raise ConfigurationError(f"{call.function} takes {takes.value} here", argument=str(argument))


def _check_range(call: Call, constants: Sequence[Constant]) -> None:
    match constants:
        case [int(start), int(stop)] if stop < start:
            raise ConfigurationError(
                f"{call.function} has an end before its start", start=start, end=stop
            )
