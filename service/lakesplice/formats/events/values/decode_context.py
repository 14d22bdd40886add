"""The input of decoding beside the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.choices import FormatName, TypeMapping
from lakesplice.model.names import TableName


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as a registry keeps it; `references` are those it names types of, before it."""

    text: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """The table that the records' topic feeds, and how its columns are written where the records
    don't say (`declared`: by source column name; None: nothing was declared). `history` has the
    types from the source's DDL, by the place of a change; they count before what
    is declared.

    `format` is what the records are written in where that is known, because it was set or was seen
    before; otherwise the records show it. `schemas` are those of a schema registry that the
    records' heads name, without the numbers that it doesn't know; None: there is no registry.
    `mappings` are the types' that the user chose. `key` are columns to tell rows by, instead of
    what the records say. `threads` lets the JSON reader use all cores; in an executor the cores are
    taken already.
    """

    table: TableName
    declared: Mapping[str, DeclaredType] | None = None
    format: FormatName | None = None
    threads: bool = False
    schemas: Mapping[int, SchemaText] | None = None
    mappings: tuple[TypeMapping, ...] = ()
    key: tuple[str, ...] = ()
    history: TypeHistory | None = None
