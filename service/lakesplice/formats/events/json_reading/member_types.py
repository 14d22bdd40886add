"""Finds the types of an event's members from their values, for members whose type isn't known.

An event in which such a member has another type has another shape; it is not refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

# A member's type in a hashable form: a name, or ("struct", members), or ("list", item).
Form = str | tuple[str, Any]
_ARROW = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "null": pa.null(),
}


def shown_form(value: object) -> Form:
    """Return the form of the type that a member's value shows."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return ("struct", tuple((str(name), shown_form(of)) for name, of in value.items()))
    if isinstance(value, list):
        return ("list", shown_form(value[0]) if value else "null")
    return "null"


def arrow_type(form: Form) -> pa.DataType:
    """Return the Arrow type of a form."""
    if isinstance(form, str):
        return _ARROW[form]
    kind, of = form
    if kind == "list":
        return pa.list_(arrow_type(of))
    return pa.struct([(name, arrow_type(member)) for name, member in of])


def shown_type(value: object) -> pa.DataType:
    """Return the Arrow type that a member's value shows."""
    return arrow_type(shown_form(value))
