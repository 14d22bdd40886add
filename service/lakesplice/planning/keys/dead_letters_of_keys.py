"""Finds dead letters that may belong to some keys. A dead letter has the bytes of a record that
couldn't be decoded, so its key isn't always known.

If the record's own key can be read, that decides. Otherwise the letter counts as one of a key if
the values of all key columns occur in it. In a letter that isn't text, such as Avro, only texts can
be found; for keys with other values the result is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from lakesplice.model.schema import TableSchema
from lakesplice.planning.keys.requested_key import RequestedKey

_WORD = rb"[0-9A-Za-z_]"


def is_of_keys(
    key: bytes | None,
    value: bytes | None,
    keys: Sequence[RequestedKey],
    schema: TableSchema,
    shard: Mapping[str, str],
) -> bool | None:
    """Return whether a letter, with the record's key and value, may belong to one of the keys; None
    if that is unknown.
    """
    sent = RequestedKey.sent(key, schema, shard)
    if sent is not None:
        return any(one.hash == sent.hash for one in keys)
    content = b"\n".join(part for part in (key, value) if part)
    if any(_occurs(one, content, shard) for one in keys):
        return True
    texts_alone = all(isinstance(one, str) for of in keys for one in _values(of, shard))
    return False if texts_alone or _is_text(content) else None


def _values(key: RequestedKey, shard: Mapping[str, str]) -> list[object]:
    return [value for name, value in key.values.items() if name not in shard]


def _occurs(key: RequestedKey, content: bytes, shard: Mapping[str, str]) -> bool:
    return all(
        any(_is_in(form, content) for form in _spellings(value)) for value in _values(key, shard)
    )


def _spellings(value: object) -> set[bytes]:
    """The spellings that a value may have in a record's text."""
    if isinstance(value, bytes):
        return {value, value.hex().encode()}
    text = value if isinstance(value, str) else str(value)
    return {text.encode(), json.dumps(text)[1:-1].encode()}


def _is_in(form: bytes, content: bytes) -> bool:
    """Whether a value occurs, not as a part of a longer word or number."""
    pattern = rb"(?<!" + _WORD + rb")" + re.escape(form) + rb"(?!" + _WORD + rb")"
    return re.search(pattern, content) is not None


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
