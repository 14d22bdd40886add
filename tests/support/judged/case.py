"""Records of one form, and the expected result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakesplice.formats.events import DecodeContext, SchemaText, TypeHistory, declare
from tests.support.debezium import TABLE, Record, compact

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """Records of the table `TABLE` that are read as its judgement says. `rows` are those after the
    changes, columns that aren't named left out; None: a record of the case is refused.
    """

    records: Sequence[Record]
    rows: Sequence[Json] | None = None
    declared: Mapping[str, str] | None = None
    schemas: Mapping[int, SchemaText] | None = None
    history: TypeHistory | None = None

    @property
    def context(self) -> DecodeContext:
        """How the records are decoded."""
        declared = None if self.declared is None else declare(self.declared)
        return DecodeContext(TABLE, declared, schemas=self.schemas, history=self.history)


def bare(*values: object) -> list[Record]:
    """Records without keys."""
    return [(None, compact(value)) for value in values]


def refused(*values: object, **declared: str) -> Case:
    """A case of records without keys, one of which is refused."""
    return Case(bare(*values), declared=declared or None)


def read(rows: Sequence[Json], *records: Record, **declared: str) -> Case:
    """A case of records that become rows."""
    return Case(records, rows, declared or None)
