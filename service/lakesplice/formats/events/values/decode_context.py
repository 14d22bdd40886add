"""The input of decoding besides the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.choices import FormatName, TypeMapping
from lakesplice.model.names import TableName


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema in a registry; `references` are the schemas whose types it uses, each before those
    that use it.
    """

    text: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """The table that the records' topic feeds, and the types of its columns if the records don't
    contain them (`declared`: by source column name; None if nothing was declared). `history` has
    the types from the source's DDL, by position; they take precedence over declared types.

    `format` is the records' format if it was set or seen before; otherwise the records show it.
    `schemas` has the schemas that the records' heads name, without those that the registry lacks;
    None if there is no registry. `mappings` are the user's type mappings. `key` has the columns
    that identify rows, instead of the records' own key. `threads` lets the JSON reader use all
    cores; in an executor the cores are already in use.
    """

    table: TableName
    declared: Mapping[str, DeclaredType] | None = None
    format: FormatName | None = None
    threads: bool = False
    schemas: Mapping[int, SchemaText] | None = None
    mappings: tuple[TypeMapping, ...] = ()
    key: tuple[str, ...] = ()
    history: TypeHistory | None = None
