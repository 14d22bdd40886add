"""Refuses parts of a parsed SQL text that nobody here reads, such as `LIMIT 5` in a DELETE.

A parser keeps each part of a text as an argument of a node: `x NOT LIKE 'a%'` is a `Like` with the
argument `negate`. Code that doesn't look at an argument does as if the text lacked it, which can
turn a condition into its opposite. So every argument that is set must be in `READ`, the list of
those that the translations read. A node whose kind is derived from one of the list, as CONCAT_WS
from CONCAT, would be taken for that. All other kinds are refused by the translations themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lakesplice.errors import UsageError

_ONE = frozenset({"this"})
_TWO = frozenset({"this", "expression"})
_SEVERAL = frozenset({"this", "expressions"})

READ: Mapping[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(
        (
            exp.Abs, exp.Ceil, exp.Day, exp.Floor, exp.From, exp.HexString, exp.Length, exp.Lower,
            exp.Month, exp.Neg, exp.Not, exp.Paren, exp.TableAlias, exp.Trim, exp.TsOrDsToDate,
            exp.Upper, exp.Where, exp.Year,
        ),
        _ONE,
    ),
    **dict.fromkeys(
        (
            exp.Add, exp.And, exp.EQ, exp.GT, exp.GTE, exp.Is, exp.LT, exp.LTE, exp.Mod,
            exp.Mul, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif, exp.Or, exp.Sub,
        ),
        _TWO,
    ),
    **dict.fromkeys((exp.Coalesce, exp.Schema), _SEVERAL),
    exp.In: _SEVERAL | {"query"},
    # That these skip nulls is how they are in Spark.
    **dict.fromkeys((exp.Greatest, exp.Least), _SEVERAL | {"ignore_nulls"}),
    # These say what other dialects do with nulls, with a division by zero, and with its result.
    exp.Div: _TWO | {"safe", "typed"},
    exp.Concat: frozenset({"expressions", "safe"}),
    exp.DPipe: _TWO | {"safe"},
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: _TWO | {"negate"},
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Round: frozenset({"this", "decimals"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Replace: _TWO | {"replacement"},
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),  # x::int, 1L
    exp.Column: frozenset({"this", "table"}),
    # Statements.
    exp.Update: frozenset({"this", "expressions", "where"}),
    exp.Delete: frozenset({"this", "where"}),
    exp.Merge: frozenset({"this", "using", "on", "whens"}),
    exp.Whens: frozenset({"expressions"}),
    exp.When: frozenset({"matched", "source", "condition", "then"}),
    exp.Insert: _TWO | {"overwrite"},
    exp.Values: frozenset({"expressions"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.Select: frozenset({"expressions", "from_"}),
    exp.Star: frozenset(),
    exp.Table: frozenset({"this", "db", "alias"}),
}  # fmt: skip


def require_read_parts(tree: exp.Expr, text: str) -> None:
    """Raise `UsageError` if a node of a parsed text has a part that isn't in `READ`."""
    for node in tree.walk():
        known = READ.get(type(node))
        if known is not None:
            unread = [name for name, value in node.args.items() if value and name not in known]
        else:
            unread = [type(node).__name__] if isinstance(node, tuple(READ)) else []
        if unread:
            raise UsageError(
                "a part of the SQL isn't supported; leave it out",
                part=node.sql("spark"),
                unsupported=unread[0].strip("_"),
                text=text,
            )
