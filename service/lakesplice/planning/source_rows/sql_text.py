"""Names and constants in SQL, as MySQL and MariaDB read them under any `sql_mode`."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name of a database, table or column as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def octets(value: bytes) -> str:
    """Return bytes as a constant of SQL, safe whatever they are."""
    return f"X'{value.hex()}'"
