"""Translates errors of a database's client to errors that say what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakesplice.errors import SourceUnavailable

if TYPE_CHECKING:
    from lakesplice.storage.source.database import DatabaseAddress

# ER_ACCESS_DENIED_ERROR, and the same without a password.
_NOT_BELIEVED = frozenset((1045, 1698))
# A database, a table, a column, a privilege of the server, a routine.
_NOT_ALLOWED = frozenset((1044, 1142, 1143, 1227, 1370))
_CAUSE_CHARACTERS_MAX = 200
_PRIVILEGE = re.compile(r"you need \(at least one of\) the (.+?) privilege")
_COMMAND = re.compile(r"(\w+) command denied .*for (?:table|column .* in table) (\S+)")


def source_failure(error: Exception, address: DatabaseAddress) -> SourceUnavailable:
    """Return the error to raise for a client's error: wrong credentials, a missing right (which it
    names), or a server that doesn't answer.
    """
    code = error.args[0] if error.args else None
    facts: dict[str, object] = {
        "host": address.host,
        "port": address.port,
        "cause": str(error)[:_CAUSE_CHARACTERS_MAX],
    }
    if code in _NOT_BELIEVED:
        return SourceUnavailable(
            "the database doesn't accept the user or the password; correct them",
            user=address.user,
            **facts,
        )
    if code in _NOT_ALLOWED:
        return SourceUnavailable(
            "the database refuses; give the user the right to this",
            right=_right(str(error.args[-1])),
            user=address.user,
            **facts,
        )
    return SourceUnavailable("the database doesn't answer; check its address", **facts)


def _right(message: str) -> str:
    """Return the right that the server's message names, or the message."""
    if privilege := _PRIVILEGE.search(message):
        return privilege[1].replace("(s)", "")
    if command := _COMMAND.search(message):
        return f"{command[1]} on {command[2].replace('`', '')}"
    return message
