"""Paths of files in a log: those of URIs, relative to the table."""

from __future__ import annotations

from urllib.parse import quote


def escaped(path: str) -> str:
    """Return a path as the log has it; as other writers do, `country=de` stays readable."""
    return quote(path, safe="/=")
