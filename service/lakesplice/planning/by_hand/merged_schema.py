"""The schema of a table fed by hand after rows with further columns, or with wider types.

Columns are added at the end, and are null in the rows that are there. A column gets another type
only if it holds all values of both, such as int after a long came.
"""

from __future__ import annotations

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.by_hand.hand_fed_schema import require_own_names, source_field
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.planning.schema.evolution import Fits, Grows, fit
from lakesplice.planning.schema.type_changes import widened


def merged_schema(current: TableSchema, given: pa.Schema) -> TableSchema:
    """Return the schema that also has the columns of some rows; the present one if it has them.

    `UsageError` if there is none: for a type without an exact counterpart or that can't be joined
    with the column's, and for an adopted table, whose files stay as they are.
    """
    names = stored_names(current)
    asked = {names.get(field.name, field.name): source_field(field) for field in given}
    present = [
        _field_with_both_types(column, asked.pop(column.name, None)) for column in current.columns
    ]
    sources = {column.name: column.source_name for column in current.columns}
    image = SourceSchema((*present, *asked.values()), tuple(sources[name] for name in current.key))
    verdict = fit(current, image)
    if isinstance(verdict, Fits):
        return current
    if current.adopted:
        raise UsageError("an adopted table can't get other columns; copy it into a new table")
    if not isinstance(verdict, Grows):
        raise UsageError("no table can have these columns", reason=verdict.detail)
    require_own_names(verdict.next)
    return verdict.next


def _field_with_both_types(column: Column, field: SourceField | None) -> SourceField:
    wider = None if field is None else widened(column, field)
    if wider is None or wider.type == column.type:
        return SourceField(column.source_name, column.type, column.source_type)
    return SourceField(column.source_name, wider.type, wider.source_type)
