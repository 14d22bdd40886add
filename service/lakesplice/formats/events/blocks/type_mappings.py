"""Columns of blocks in other types, which the user chose by name; the last step of decoding.

If the other type can't hold a value, its record becomes a dead letter, unless the mapping's name
says that it loses something.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask
from lakesplice.model.choices import TypeMapping
from lakesplice.model.column_values import decimal_texts, decimals_as_doubles
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive

_LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class _Rule:
    """The columns that a mapping is for, and how they are converted to the type `to`."""

    of: Callable[[ColumnType], bool]
    to: ColumnType
    convert: Callable[[pa.Array], tuple[pa.Array, Mask | None]]


def map_types(ledger: VerdictLedger, chosen: Collection[TypeMapping]) -> None:
    """Change the types of the ledger's blocks; of several mappings for one column the first in the
    order of `TypeMapping` counts.
    """
    rules = _chosen_rules(chosen)
    if rules:
        ledger.blocks = [_mapped(block, rules, ledger) for block in ledger.blocks]


def mapped_schema(schema: SourceSchema, chosen: Collection[TypeMapping]) -> SourceSchema:
    """Return the schema of rows with their types changed."""
    return _mapped_schema(schema, _chosen_rules(chosen))


def mapped_column(
    field: SourceField, values: pa.Array, chosen: Collection[TypeMapping]
) -> tuple[pa.Array, Mask | None]:
    """Return the values of a column that no record sent in the type that records give it, and which
    of them are beyond it.
    """
    rule = _rule_of(field, _chosen_rules(chosen))
    return (values, None) if rule is None else rule.convert(values)


def _chosen_rules(chosen: Collection[TypeMapping]) -> list[_Rule]:
    return [_RULES[mapping] for mapping in TypeMapping if mapping in chosen]


def _mapped(block: ImageBlock, rules: list[_Rule], ledger: VerdictLedger) -> ImageBlock:
    wrong = np.zeros(len(block), np.bool_)
    before, after = block.before, block.after
    for at, field in enumerate(block.schema.fields):
        rule = _rule_of(field, rules)
        if rule is None:
            continue
        before, before_wrong = _with_column(before, at, rule)
        after, after_wrong = _with_column(after, at, rule)
        beyond = (before_wrong & block.before_present) | (after_wrong & block.after_present)
        _refuse(block, beyond, field, rule, ledger)
        wrong |= beyond
    schema = _mapped_schema(block.schema, rules)
    mapped = replace(block, schema=schema, before=before, after=after)
    return mapped.filter(~np.isin(block.rows, block.rows[wrong])) if wrong.any() else mapped


def _mapped_schema(schema: SourceSchema, rules: list[_Rule]) -> SourceSchema:
    fields, omitted = (
        tuple(_mapped_field(field, rules) for field in some)
        for some in (schema.fields, schema.omitted)
    )
    return replace(schema, fields=fields, omitted=omitted)


def _rule_of(field: SourceField, rules: list[_Rule]) -> _Rule | None:
    type_ = field.type
    return next((rule for rule in rules if type_ is not None and rule.of(type_)), None)


def _mapped_field(field: SourceField, rules: list[_Rule]) -> SourceField:
    rule = _rule_of(field, rules)
    if rule is None:
        return field
    return SourceField(field.name, rule.to, f"{field.source_type} as {rule.to.name}")


def _with_column(table: pa.Table, at: int, rule: _Rule) -> tuple[pa.Table, Mask]:
    values, wrong = rule.convert(table.column(at).combine_chunks())
    name = table.column_names[at]
    nowhere = np.zeros(len(table), np.bool_)
    return table.set_column(at, name, values), nowhere if wrong is None else wrong


def _refuse(
    block: ImageBlock, wrong: Mask, field: SourceField, rule: _Rule, ledger: VerdictLedger
) -> None:
    detail = f"{field.name} is beyond {rule.to.name}, to which type_mapping maps its type"
    for row in np.unique(block.rows[wrong]).tolist():
        ledger.dead.setdefault(row, Flaw(DeadReason.OUT_OF_RANGE, detail))


def _to_long(values: pa.Array) -> tuple[pa.Array, Mask | None]:
    beyond = pc.greater(values, pa.scalar(_LONG_MAX, values.type)).fill_null(False)
    fitting = pc.if_else(beyond, pa.scalar(None, values.type), values)
    return fitting.cast(pa.int64()), beyond.to_numpy(zero_copy_only=False)


def _to_double(values: pa.Array) -> tuple[pa.Array, Mask | None]:
    return decimals_as_doubles(values), None


def _to_text(values: pa.Array) -> tuple[pa.Array, Mask | None]:
    is_decimal = pa.types.is_decimal(values.type)
    return decimal_texts(values) if is_decimal else values.cast(pa.string()), None


def _cast(to: pa.DataType) -> Callable[[pa.Array], tuple[pa.Array, Mask | None]]:
    return lambda values: (values.cast(to), None)


def _is(*kinds: Primitive) -> Callable[[ColumnType], bool]:
    return lambda type_: type_.kind in kinds


_UNSIGNED = ColumnType(Primitive.DECIMAL, 20, 0)
_RULES = {
    TypeMapping.BIGINT_UNSIGNED_TO_BIGINT: _Rule(
        lambda type_: type_ == _UNSIGNED, ColumnType(Primitive.LONG), _to_long
    ),
    TypeMapping.DECIMAL_TO_DOUBLE: _Rule(
        _is(Primitive.DECIMAL), ColumnType(Primitive.DOUBLE), _to_double
    ),
    TypeMapping.TINYINT1_NOT_BOOL: _Rule(
        _is(Primitive.BOOLEAN), ColumnType(Primitive.BYTE), _cast(pa.int8())
    ),
    TypeMapping.TO_STRING: _Rule(
        lambda type_: type_.kind not in (Primitive.STRING, Primitive.BINARY),
        ColumnType(Primitive.STRING),
        _to_text,
    ),
}
