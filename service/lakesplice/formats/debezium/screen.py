"""Which texts of a block that can't be read are to blame: one regular expression over all of them.

The expression is the grammar of a shape's JSON: its names, each with the form of its values, in any
order. It is linear in the text and runs outside Python. A text that matches may still repeat a field or
hold a number out of range; a text that doesn't may still be legal, written in another way. So it only
sorts; the verdict is the reader's or `strict.py`'s.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

_SPACE = "[ ]*"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_INTEGER = r"-?(?:0|[1-9][0-9]{0,18})"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?"


def matching(texts: pa.Array, payload: pa.DataType, closing: bytes) -> pa.Array:
    """Return a boolean array: the texts that look like `payload`."""
    pattern = _pattern(payload, closing)
    try:
        return pc.match_substring_regex(texts, pattern)
    except pa.ArrowInvalid:
        # Thousands of columns are more than the engine takes: let each text be read by itself.
        return pa.array([False] * len(texts))


@lru_cache(maxsize=256)
def _pattern(payload: pa.DataType, closing: bytes) -> str:
    # Where nothing completes the wrapper, the text brings its last brace itself.
    end = "" if closing else r"\}"
    return f"^{_value(payload)}{end}$"


def _value(of: pa.DataType) -> str:
    if pa.types.is_struct(of):
        return f"(?:null|{_object(of)})"
    if pa.types.is_string(of):
        return f"(?:null|{_STRING})"
    if pa.types.is_integer(of):
        return f"(?:null|{_INTEGER})"
    if pa.types.is_floating(of):
        return f"(?:null|{_NUMBER})"
    if pa.types.is_boolean(of):
        return "(?:null|true|false)"
    # Lists occur in no envelope known: such a text is read by itself.
    return "null"


def _object(of: pa.StructType) -> str:
    """Members of one type share its pattern, so that both images cost one."""
    names: dict[str, list[str]] = defaultdict(list)
    for member in of:
        # The form in which names are in the text, and then as an expression.
        name = json.dumps(member.name, ensure_ascii=False)[1:-1]
        names[_value(member.type)].append(re.escape(name))
    members = "|".join(
        f'"(?:{"|".join(alike)})"{_SPACE}:{_SPACE}{value}' for value, alike in names.items()
    )
    if not members:
        return r"\{\}"
    return rf"\{{{_SPACE}(?:{members})(?:{_SPACE},{_SPACE}(?:{members}))*{_SPACE}\}}"
