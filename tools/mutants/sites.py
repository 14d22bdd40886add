"""Where a module can be mutated, found in its syntax tree.

A mutant replaces one expression or statement of the source text. Left alone is what says nothing of
behaviour: annotations, decorators, docstrings, assertions, messages of errors and logs, text.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
BOUNDARIES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
REVERSALS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
HINTS = {"strict", "use_threads", "pre_buffer", "buffer_size", "copy", "exc_info", "daemon"}
"""Keywords that change how fast or how carefully something is done, not what comes of it."""
LOGGERS = {"log", "logger", "_log", "_logger"}


@dataclass(frozen=True)
class Mutant:
    """One fault: `text` in place of the bytes [start, end) of a module."""

    path: str
    """Of the module, from the root of the checkout."""
    line: int
    function: str
    """The qualified name of the function that has it; empty outside of functions."""
    kind: str
    start: int
    end: int
    text: str

    @property
    def place(self) -> str:
        """The file and line, as editors understand them."""
        return f"{self.path}:{self.line}"

    def applied_to(self, source: bytes) -> bytes:
        """Return the module's source with the fault in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a module, by its place; each of them parses."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.kind, mutant.text))


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self._path = path
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scopes: list[str] = []
        self._functions: list[str] = []
        self.found: list[Mutant] = []

    def _add(self, kind: str, node: ast.expr | ast.stmt, text: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        function = self._functions[-1] if self._functions else ""
        self.found.append(
            Mutant(
                path=self._path,
                line=node.lineno,
                function=function,
                kind=kind,
                start=start,
                end=end,
                text=text,
            )
        )

    # Scopes

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scopes.append(node.name)
        self._all(node.body)
        self._scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._all([*node.args.defaults, *(one for one in node.args.kw_defaults if one)])
        self._functions.append(".".join([*self._scopes, node.name]))
        self._scopes += [node.name, "<locals>"]
        self._all(node.body)
        del self._scopes[-2:]
        self._functions.pop()

    def _all(self, nodes: Sequence[ast.expr | ast.stmt]) -> None:
        for node in nodes:
            self.visit(node)

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or _logs(node.value):
            return
        if isinstance(node.value, ast.Call):
            self._add("statement removed", node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("statement removed", node, "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion that fails is a fault already."""

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add("statement removed", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], ast.Attribute | ast.Subscript) and self._functions:
            self._add("statement removed", node, "pass")
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add("statement removed", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._add("statement removed", node, "pass")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._reverse(node.test)
        for statement in node.body:
            if isinstance(statement, ast.Return):
                self._add("statement removed", statement, "pass")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._reverse(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._reverse(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._reverse(test)
        self.generic_visit(node)

    def _reverse(self, test: ast.expr) -> None:
        """Reverse a condition that no other kind of mutant reverses."""
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr):
            self._add("condition reversed", test, f"(not ({ast.unparse(test)}))")

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        for kind, table in (
            ("comparison flipped", COMPARISONS),
            ("boundary moved", BOUNDARIES),
            ("comparison flipped", REVERSALS),
        ):
            for at, operator in enumerate(node.ops):
                if other := table.get(type(operator)):
                    operators = [*node.ops[:at], other(), *node.ops[at + 1 :]]
                    changed = ast.Compare(node.left, operators, node.comparators)
                    self._add(kind, node, f"({ast.unparse(changed)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        changed = ast.unparse(ast.BoolOp(other, node.values))
        self._add("and, or swapped", node, f"({changed})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = None if _is_type(node.left) else OPERATORS.get(type(node.op))
        if other is not None and not _is_text(node.left) and not _is_text(node.right):
            changed = ast.unparse(ast.BinOp(node.left, other(), node.right))
            logical = isinstance(node.op, ast.BitAnd | ast.BitOr)
            self._add("and, or swapped" if logical else "plus, minus swapped", node, f"({changed})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert):
            self._add("not dropped", node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        self._all(node.args[:1] if _asks_for_a_type(node) else node.args)
        self._all([word.value for word in node.keywords if word.arg not in HINTS])

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant changed", node, str(not node.value))
        elif isinstance(node.value, int):
            for other in (node.value + 1, node.value - 1):
                self._add("constant changed", node, f"({other})" if other < 0 else str(other))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text with values in it is text."""


def _logs(node: ast.expr) -> bool:
    """Whether the expression writes a line of a log."""
    call = node.func if isinstance(node, ast.Call) else None
    owner = call.value if isinstance(call, ast.Attribute) else None
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return name in LOGGERS


def _asks_for_a_type(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass", "cast")


def _is_type(node: ast.expr) -> bool:
    """Whether the operand is named like a class, so that the whole is one type or another."""
    if isinstance(node, ast.BinOp):
        return _is_type(node.left)
    return isinstance(node, ast.Name) and node.id != node.id.upper() and node.id[0].isupper()


def _is_text(node: ast.expr) -> bool:
    """Whether the operand is visibly a text or a list, which nothing is subtracted from."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
