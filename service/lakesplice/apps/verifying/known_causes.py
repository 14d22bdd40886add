"""Recognises differences with a known cause, such as a setting of the connector."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.report import DifferenceKind
from lakesplice.model.types import Primitive as TypeKind

_INSERT_ONLY = "the table is insert-only: it keeps rows that its source deletes"
_AS_INSERTED = "the table is insert-only: it keeps rows as they were inserted"
_SIGNED = (
    "the connector sends large BIGINT UNSIGNED as negative numbers: set"
    " bigint.unsigned.handling.mode=precise"
)
_CASCADE = "the binlog has no DELETE for rows that a foreign key's cascade deletes"
_DEFAULT = (
    "the lake has the column's DEFAULT for NULL: set"
    " value.converter.replace.null.with.default=false"
)
_SIX_DIGITS = "the connector's snapshot reads a FLOAT with six digits"
_ZERO = "the connector's snapshot sends null for a TIMESTAMP of zero"
ROLLED_BACK = (
    "the change was rolled back to a savepoint: the binlog keeps such changes of transactions that"
    " also write to tables without transactions (MyISAM, for example)"
)
_FLOAT_DIGITS = 6


def note_of(
    table: ComparedTable, kind: DifferenceKind, differing: Mapping[str, tuple[Any, Any]]
) -> str:
    """Return the known cause of a difference; empty if it doesn't explain every column."""
    if kind is DifferenceKind.SURPLUS:
        return _INSERT_ONLY if table.insert_only else _CASCADE if table.source.cascades else ""
    if table.insert_only and kind is DifferenceKind.CHANGED:
        return _AS_INSERTED
    notes = {_of_column(table, name, *values) for name, values in differing.items()}
    return "; ".join(sorted(notes)) if "" not in notes else ""


def _of_column(table: ComparedTable, name: str, source: Any, lake: Any) -> str:
    column = next(one for one in table.compared.columns if one.name == name)
    described = next(one for one in table.source.columns if one.name == name)
    if source is None and described.default is not None and str(lake) == described.default:
        return _DEFAULT
    if column.type.kind is TypeKind.FLOAT and None not in (source, lake):
        return _SIX_DIGITS if np.float32(f"{source:.{_FLOAT_DIGITS}g}") == np.float32(lake) else ""
    if described.type.startswith("bigint") and "unsigned" in described.type and lake is not None:
        return _SIGNED if source is None and lake < 0 else ""
    if described.type.startswith("timestamp") and lake is None:
        return _ZERO if source == datetime(1970, 1, 1, tzinfo=UTC) else ""
    return ""
