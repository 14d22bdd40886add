"""Quotes names and texts for the dialects of SQL, by sqlglot."""

from __future__ import annotations

from sqlglot import exp


def quoted(name: str, dialect: str) -> str:
    """Return a name in a dialect's quotes, whatever characters it has."""
    return exp.to_identifier(name, quoted=True).sql(dialect)


def qualified(database: str, name: str, dialect: str) -> str:
    """Return the quoted name of a table or view in its database."""
    return f"{quoted(database, dialect)}.{quoted(name, dialect)}"


def literal(text: str, dialect: str) -> str:
    """Return a text as a dialect's literal."""
    return exp.Literal.string(text).sql(dialect)
