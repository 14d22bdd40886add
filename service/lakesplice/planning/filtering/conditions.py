"""Conditions written in SQL, as filters by which a reader can skip row groups.

Columns are compared with literals: `=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`, `IN`, `BETWEEN`, `LIKE`,
`IS NULL`, `IS TRUE`, `IS DISTINCT FROM`, and `AND`, `OR`, `NOT` of these. The grammar is Spark's,
by sqlglot. A condition that is null selects no row, as in SQL; NaN matches no comparison except
`<>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import InvalidOperation
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from lakesplice.errors import UsageError
from lakesplice.planning.filtering.literals import is_text, literal_scalar
from lakesplice.planning.filtering.parsed_parts import require_read_parts

COMPARISONS: Mapping[type[exp.Expr], Callable[[Any, Any], pc.Expression]] = {
    exp.EQ: eq,
    exp.NEQ: ne,
    exp.LT: lt,
    exp.LTE: le,
    exp.GT: gt,
    exp.GTE: ge,
}
# The comparison that results when its sides are swapped.
MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
TEXT_MAX = 100_000
# Arrow makes chains of what AND and OR join, and recurses into them: with 9,000 the
# process ended with a segmentation fault, with 4,000 not yet.
COLUMNS_AND_VALUES_MAX = 2_000
_SHOWN_MAX = 500


def parsed_condition(text: str, schema: pa.Schema) -> pc.Expression:
    """Return a condition on columns of the schema; `UsageError` says which part doesn't fit.

    Also for a text of more than `TEXT_MAX` characters, and for one that is nested too deeply.
    """
    return translated(text, lambda node: ConditionTranslation(text, schema).condition(node))


def translated(text: str, translate: Callable[[exp.Expr], pc.Expression]) -> pc.Expression:
    """Parse a text with bounds on its length and depth, and translate it; errors as
    `parsed_condition`.
    """
    if len(text) > TEXT_MAX:
        raise UsageError(
            "a filter is too long; use a range, or read the rows and join them with the values",
            characters=len(text),
            most=TEXT_MAX,
        )
    try:
        parsed = _parsed(text)
        require_read_parts(parsed, _cut(text))
        return translate(parsed)
    except RecursionError:
        raise UsageError(
            "a filter is nested too deeply; leave out parentheses, or use IN for many OR",
            filter=_cut(text),
        ) from None


def _parsed(text: str) -> exp.Expr:
    try:
        found = sqlglot.parse(text, read="spark")
    except sqlglot.errors.SqlglotError as error:
        line = str(error).partition("\n")[0]
        raise UsageError("a filter isn't a SQL condition", filter=_cut(text), cause=line) from None
    if len(found) != 1 or found[0] is None:
        raise UsageError("a filter must be a single SQL condition", filter=text)
    return found[0]


class ConditionTranslation:
    """Translates a condition on columns of a schema; a subclass may know more kinds of operands."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text, self._schema, self._met = text, schema, 0

    def condition(self, node: exp.Expr) -> pc.Expression:
        """Return a boolean expression; `UsageError` says which part doesn't fit."""
        if isinstance(node, exp.Paren):
            return self.condition(node.this)
        if isinstance(node, exp.Not):
            return ~self.condition(node.this)
        if isinstance(node, exp.And):
            return _balanced([self.condition(one) for one in node.flatten()], and_)
        if isinstance(node, exp.Or):
            return _balanced([self.condition(one) for one in node.flatten()], or_)
        if isinstance(node, exp.Boolean):
            return pc.scalar(bool(node.this))
        if isinstance(node, exp.Column):
            return self._flag(node)
        return self._predicate(node)

    def _predicate(self, node: exp.Expr) -> pc.Expression:
        if type(node) in COMPARISONS:
            return self._compared(node)
        if isinstance(node, exp.NullSafeNEQ):
            return ~self._predicate(exp.NullSafeEQ(this=node.this, expression=node.expression))
        field, kind = self._column(node.this)
        if isinstance(node, exp.NullSafeEQ):
            if isinstance(node.expression, exp.Null):
                return field.is_null()
            left, right = self._sides(field, kind, node.expression)
            return (left == right) & field.is_valid()
        if isinstance(node, exp.Is):
            return self._is(field, kind, node.expression)
        if isinstance(node, exp.Between):
            low, high = (self._sides(field, kind, node.args[end]) for end in ("low", "high"))
            return ge(*low) & le(*high)
        if isinstance(node, exp.In) and node.expressions:
            return self._among(field, kind, node.expressions)
        if isinstance(node, exp.Like) and is_text(node.expression) and pa.types.is_string(kind):
            found = pc.match_like(field, node.expression.this)
            # Depending on the parser's version NOT LIKE is a NOT of its own, or a part of LIKE.
            return ~found if node.args.get("negate") else found
        raise self._unfit(
            node,
            "a filter can't have this kind of condition; compare columns with literals, by =, <>,"
            " <, >, IN, BETWEEN, LIKE or IS NULL",
        )

    def _compared(self, node: exp.Expr) -> pc.Expression:
        kind, left, right = type(node), node.this, node.expression
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            kind, left, right = MIRRORED.get(kind, kind), right, left
        field, of = self._column(left)
        return COMPARISONS[kind](*self._sides(field, of, right))

    def _is(self, field: pc.Expression, kind: pa.DataType, what: exp.Expr) -> pc.Expression:
        if isinstance(what, exp.Null):
            return field.is_null()
        if isinstance(what, exp.Boolean) and pa.types.is_boolean(kind):
            return (field == bool(what.this)) & field.is_valid()
        raise self._unfit(what, "IS can be followed only by NULL, or by TRUE or FALSE for booleans")

    def _among(
        self, field: pc.Expression, kind: pa.DataType, nodes: list[exp.Expr]
    ) -> pc.Expression:
        """One comparison with each value, so that nulls stay null, also under NOT."""
        return _balanced([eq(*self._sides(field, kind, node)) for node in nodes], or_)

    def _flag(self, node: exp.Column) -> pc.Expression:
        field, kind = self._column(node)
        if not pa.types.is_boolean(kind):
            raise self._unfit(node, "a column without a comparison must be boolean")
        return field

    def _column(self, node: exp.Expr | None) -> tuple[pc.Expression, pa.DataType]:
        if isinstance(node, exp.Paren):
            return self._column(node.this)
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            raise self._unfit(node, "a filter compares a column, given by its name, with literals")
        if node.name not in self._schema.names:
            raise UsageError(
                "the table has no such column",
                columns=[node.name],
                known=sorted(self._schema.names),
                filter=self._text,
            )
        self._count()
        return pc.field(node.name), self._schema.field(node.name).type

    def _sides(
        self, field: pc.Expression, kind: pa.DataType, node: exp.Expr
    ) -> tuple[pc.Expression, pa.Scalar | pc.Expression]:
        """Return both sides of a comparison, in types that compare exactly."""
        return field, self._value(node, kind)

    def _value(self, node: exp.Expr, kind: pa.DataType) -> pa.Scalar:
        """A literal as a scalar that compares exactly with values of the column's type."""
        self._count()
        if isinstance(node, exp.Null):
            return pa.scalar(None, kind)
        try:
            found = literal_scalar(node, kind)
        except (pa.ArrowException, ValueError, OverflowError, InvalidOperation):
            found = None
        if found is None:
            raise self._unfit(node, f"it can't be compared with a column of type {kind}")
        return found

    def _count(self) -> None:
        self._met += 1
        if self._met > COLUMNS_AND_VALUES_MAX:
            raise UsageError(
                "a filter has too many conditions or values; use a range, or join the rows with"
                " the values",
                filter=_cut(self._text),
                columns_and_values_max=COLUMNS_AND_VALUES_MAX,
            )

    def _unfit(self, node: object, reason: str) -> UsageError:
        # The name of a function is not an expression, only a name.
        part = node.sql("spark") if isinstance(node, exp.Expr) else str(node or "")
        return UsageError(
            "a filter doesn't fit", filter=_cut(self._text), part=_cut(part), reason=reason
        )


def _balanced(
    conditions: Sequence[pc.Expression], join: Callable[[Any, Any], pc.Expression]
) -> pc.Expression:
    """Join conditions as a tree of least depth, since Python recurses into it."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return join(_balanced(conditions[:middle], join), _balanced(conditions[middle:], join))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
