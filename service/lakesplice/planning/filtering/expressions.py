"""Values and conditions written in SQL over columns, for edits of a table fed by hand.

A condition may use everything that a filter may use, and compare any two values. A value is a
column, a literal, or composed of values:

    + - * / and - in front    whole numbers as 64 bits, decimals exactly; a quotient is a double
    %                         the rest of whole numbers, with the sign of the first one
    ||, concat                texts
    CASE, if, coalesce, nullif, greatest, least, CAST
    upper lower trim length substring replace abs round floor ceil year month day

A value that can't be computed (an overflow, a division by zero, a text that is no number) refuses
the whole edit. The grammar is Spark's, parsed by sqlglot; anything that isn't in this list is
refused, and the error names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from lakesplice.errors import LakespliceError, UsageError
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType
from lakesplice.planning.filtering.casts import cast_value, fitted, is_rounded, nearest
from lakesplice.planning.filtering.conditions import (
    COMPARISONS,
    MIRRORED,
    ConditionTranslation,
    translated,
)
from lakesplice.planning.filtering.literals import (
    common_type,
    computed_in,
    is_literal,
    is_text,
    matching_literal,
    plain_literal,
    type_name,
    typed_literal,
)

_UNKNOWN = pa.null()
_SHOWN_MAX = 500
_Operand = tuple[pc.Expression, pa.DataType]
_ARITHMETIC: Mapping[type[exp.Expr], Callable[..., pc.Expression]] = {
    exp.Add: pc.add_checked,
    exp.Sub: pc.subtract_checked,
    exp.Mul: pc.multiply_checked,
    exp.Div: pc.divide_checked,
    exp.Mod: lambda a, b: pc.subtract_checked(a, pc.multiply_checked(pc.divide_checked(a, b), b)),
}
_OF_ONE: Mapping[type[exp.Expr], Callable[[pc.Expression], pc.Expression]] = {
    exp.Upper: pc.utf8_upper,
    exp.Lower: pc.utf8_lower,
    # Spaces only, as in Spark, MySQL and standard SQL.
    exp.Trim: lambda text: pc.utf8_trim(text, characters=" "),
    exp.Length: pc.utf8_length,
    exp.Abs: pc.abs_checked,
    exp.Floor: pc.floor,
    exp.Ceil: pc.ceil,
    exp.Neg: pc.negate_checked,
    exp.Year: pc.year,
    exp.Month: pc.month,
    exp.Day: pc.day,
}
_BOOLEAN = (exp.Predicate, exp.And, exp.Or, exp.Not, exp.Boolean)


def edit_condition(text: str, schema: pa.Schema) -> pc.Expression:
    """Return a condition on columns of the schema; raises `UsageError`, which says which part
    doesn't fit.

    A name `a.b` is the field called `a.b`; so a schema may have the columns of two tables.
    """
    return translated(text, lambda node: _ValueTranslation(text, schema).condition(node))


def edit_value(text: str, schema: pa.Schema, kind: pa.DataType) -> pc.Expression:
    """Return a value over columns of the schema, for a column of type `kind`; errors as
    `edit_condition`.
    """

    def translate(node: exp.Expr) -> pc.Expression:
        return _ValueTranslation(text, schema).value(node, kind)[0]

    return translated(text, translate)


def literal_values(texts: Sequence[str], kind: pa.DataType) -> pa.ChunkedArray:
    """Return the values of expressions without columns, for a column of type `kind`; `UsageError`
    for one that doesn't fit it.
    """
    one = pa.table({"row": [0]})
    none = pa.schema([])
    found = [evaluated([edit_value(text, none, kind)], one)[0].combine_chunks() for text in texts]
    return pa.chunked_array([fitted(value, kind) for value in found], kind)


def without_values(text: str) -> str:
    """Return a condition with `?` in place of its literals, for a history that holds no values."""
    hidden = (exp.Literal, exp.HexString)
    try:
        parsed = sqlglot.parse_one(text, read="spark")
        shown = parsed.transform(lambda n: exp.Placeholder() if isinstance(n, hidden) else n)
        return str(shown.sql("spark"))[:_SHOWN_MAX]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return "?"


def evaluated(values: Sequence[pc.Expression], rows: pa.Table) -> list[pa.ChunkedArray]:
    """Return the values of expressions for each row; raises `UsageError` if one can't be
    computed.
    """
    names = [f"{number}" for number in range(len(values))]
    plan = acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
            acero.Declaration("project", acero.ProjectNodeOptions(list(values), names)),
        ]
    )
    try:
        found = plan.to_table(use_threads=False)
    except (pa.ArrowException, KeyError) as error:
        raise UsageError(
            "an expression can't be computed; no row was changed", cause=str(error)
        ) from error
    return [found.column(name) for name in names]


class _ValueTranslation(ConditionTranslation):
    def value(self, node: exp.Expr, wanted: pa.DataType = _UNKNOWN) -> _Operand:
        """Return a value and its type; NULL has the type `wanted`, and a literal too if it can."""
        if isinstance(node, exp.Paren):
            return self.value(node.this, wanted)
        if isinstance(node, _BOOLEAN):
            return self.condition(node), pa.bool_()
        if isinstance(node, exp.Column):
            return self._existing_column(node)
        if is_literal(node):
            return self._literal(node, wanted)
        self._count()
        built = self._built(node, wanted)
        return built, self._type_of(built, node)

    def _built(self, node: exp.Expr, wanted: pa.DataType) -> pc.Expression:
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in _OF_ONE:
            inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
            return _OF_ONE[type(node)](self._roomy(inner))
        if isinstance(node, exp.Concat | exp.DPipe):
            parts = node.expressions or [node.this, node.expression]
            texts = [self.value(part, pa.string())[0] for part in parts]
            return pc.binary_join_element_wise(*texts, pc.scalar(""))
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Case | exp.If):
            return self._chosen(node, wanted)
        if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
            return self._of_several(node, wanted)
        if isinstance(node, exp.Nullif):
            first, other = self._alike([node.this, node.expression], wanted, node)
            return pc.if_else(_certain(first == other), pc.scalar(None), first)
        return self._with_constants(node)

    def _arithmetic(self, node: exp.Expr) -> pc.Expression:
        pair = [node.this, node.expression]
        kinds = [kind for part, (_, kind) in zip(pair, map(self.value, pair), strict=True)]
        hints = [kinds[1], kinds[0]]
        sides = [self.value(part, hint) for part, hint in zip(pair, hints, strict=True)]
        if isinstance(node, exp.Div):
            return pc.divide_checked(*(nearest(side, kind, pa.float64()) for side, kind in sides))
        if isinstance(node, exp.Mod) and not all(pa.types.is_integer(kind) for _, kind in sides):
            raise self._unfit(node, "% takes whole numbers")
        to = computed_in([kind for _, kind in sides])
        wide = [s if to in (None, kind) else nearest(s, kind, to) for s, kind in sides]
        return _ARITHMETIC[type(node)](*wide)

    def _cast(self, node: exp.Cast) -> pc.Expression:
        try:
            to = ColumnType.parse(type_name(node.args["to"])).arrow
        except LakespliceError as error:
            raise self._unfit(node, error.message) from None
        if is_literal(node.this) and (found := typed_literal(node)) is not None:
            return pc.scalar(found)
        value, of = self.value(node.this)
        if (built := cast_value(value, of, to)) is None:
            raise self._unfit(node, f"a value of type {of} can't be cast to {to}")
        return built

    def _chosen(self, node: exp.Expr, wanted: pa.DataType) -> pc.Expression:
        if isinstance(node, exp.If):
            branches, default = [node], node.args.get("false")
        else:
            branches, default = node.args["ifs"], node.args.get("default")
        conditions = [
            exp.EQ(this=node.this, expression=branch.this)
            if isinstance(node, exp.Case) and node.this is not None
            else branch.this
            for branch in branches
        ]
        values = [branch.args["true"] for branch in branches]
        *chosen, last = self._alike([*values, default or exp.Null()], wanted, node)
        for condition, value in zip(reversed(conditions), reversed(chosen), strict=True):
            last = pc.if_else(_certain(self.condition(condition)), value, last)
        return last

    def _of_several(self, node: exp.Expr, wanted: pa.DataType) -> pc.Expression:
        values = self._alike([node.this, *node.expressions], wanted, node)
        if isinstance(node, exp.Coalesce):
            return pc.coalesce(*values)
        # Nulls are skipped, as in Spark.
        of = pc.max_element_wise if isinstance(node, exp.Greatest) else pc.min_element_wise
        return of(*values)

    def _with_constants(self, node: exp.Expr) -> pc.Expression:
        """Translate functions of which some arguments must be literals."""
        if isinstance(node, exp.Round):
            digits = self._whole(node.args.get("decimals"), 0)
            value = self._roomy(node.this)
            return pc.round(value, ndigits=digits, round_mode="half_towards_infinity")
        if isinstance(node, exp.Substring):
            start, length = self._whole(node.args["start"]), node.args.get("length")
            if start < 1:
                raise self._unfit(node, "substring counts characters from 1")
            stop = None if length is None else start - 1 + max(0, self._whole(length))
            return pc.utf8_slice_codeunits(self.value(node.this)[0], start - 1, stop)
        if isinstance(node, exp.Replace):
            old, new = node.expression, node.args.get("replacement")
            if is_text(old) and new is not None and is_text(new) and old.this:
                text = self.value(node.this)[0]
                return pc.replace_substring(text, pattern=old.this, replacement=new.this)
        raise self._unfit(
            node, "an expression can't have this; docs/edits.md lists what it can have"
        )

    def _alike(
        self, nodes: Sequence[exp.Expr], wanted: pa.DataType, parent: exp.Expr
    ) -> list[pc.Expression]:
        """Return values in one type, which holds all of them exactly; a literal gets the type of
        the others, if possible.
        """
        known = [self.value(node)[1] for node in nodes if not is_literal(node)]
        hint = next((kind for kind in known if kind != _UNKNOWN), wanted)
        found = [self.value(node, hint) for node in nodes]
        common = common_type([kind for _, kind in found])
        if common is None:
            raise self._unfit(parent, "its values have no type in common; cast them")
        return [one if kind == common else nearest(one, kind, common) for one, kind in found]

    def _roomy(self, node: exp.Expr) -> pc.Expression:
        """A number with room for the digit that rounding may add; whole numbers in 64 bits."""
        value, kind = self.value(node)
        if pa.types.is_integer(kind):
            return value.cast(pa.int64())
        if pa.types.is_decimal(kind) and kind.precision < DECIMAL_PRECISION_MAX:
            return value.cast(pa.decimal128(kind.precision + 1, kind.scale))
        return value

    def _literal(self, node: exp.Expr, wanted: pa.DataType) -> _Operand:
        self._count()
        if isinstance(node, exp.Null):
            return pc.scalar(pa.scalar(None, wanted)), wanted
        found = None if wanted == _UNKNOWN else matching_literal(node, wanted)
        if found is None:
            found = plain_literal(node)
        if found is None:
            raise self._unfit(
                node,
                "a literal is a number, a text between quotes, NULL, TRUE, FALSE, DATE '…' or"
                " TIMESTAMP '…'",
            )
        return pc.scalar(found), found.type

    def _whole(self, node: exp.Expr | None, default: int | None = None) -> int:
        if node is None and default is not None:
            return default
        text = node.sql("spark") if node is not None else ""
        if not text.lstrip("-").isdecimal():
            raise self._unfit(node, "this argument must be a whole number")
        return int(text)

    def _existing_column(self, node: exp.Column) -> _Operand:
        name = ".".join(part.name for part in node.parts)
        if name not in self._schema.names:
            raise UsageError(
                "there is no such column",
                columns=[name],
                known=sorted(self._schema.names),
                expression=self._text,
            )
        self._count()
        return pc.field(name), self._schema.field(name).type

    def _type_of(self, built: pc.Expression, node: exp.Expr) -> pa.DataType:
        try:
            return evaluated([built], self._schema.empty_table())[0].type
        except UsageError as error:
            cause = error.facts.get("cause", "")
            raise self._unfit(node, f"its parts don't fit together: {cause}") from None

    # What conditions compare.

    def _predicate(self, node: exp.Expr) -> pc.Expression:
        if isinstance(node, exp.NullSafeEQ) and not is_literal(node.expression):
            left, right = self._sides(*self._column(node.this), node.expression)
            return pc.coalesce(left == right, left.is_null() & right.is_null())
        if isinstance(node, _BOOLEAN):
            return super()._predicate(node)
        found, kind = self.value(node)
        if not pa.types.is_boolean(kind):
            raise self._unfit(node, "a condition must be true or false")
        return found

    def _compared(self, node: exp.Expr) -> pc.Expression:
        kind, left, right = type(node), node.this, node.expression
        if is_literal(left):
            kind, left, right = MIRRORED.get(kind, kind), right, left
        field, of = self._column(left)
        compared = COMPARISONS[kind](*self._sides(field, of, right))
        self._type_of(compared, node)
        return compared

    def _column(self, node: exp.Expr | None) -> _Operand:
        if not isinstance(node, exp.Expr) or is_literal(node):
            raise self._unfit(node, "a condition must compare columns, or values composed of them")
        return self.value(node)

    def _sides(
        self, field: pc.Expression, kind: pa.DataType, node: exp.Expr
    ) -> tuple[pc.Expression, pa.Scalar | pc.Expression]:
        if is_literal(node):
            return super()._sides(field, kind, node)
        value, of = self._column(node)
        if is_rounded(kind, of):
            return nearest(field, kind, pa.float64()), nearest(value, of, pa.float64())
        return field, value


def _certain(condition: pc.Expression) -> pc.Expression:
    """Treat a condition that is null as false."""
    return pc.coalesce(condition, pc.scalar(False))
