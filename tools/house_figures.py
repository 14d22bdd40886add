"""Prints how large the parts of the service are: rooms, modules and functions.

Run: python tools/house_figures.py [a checkout]
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from statistics import median

_MODULES_OF = ((0, 39), (40, 99), (100, 199), (200, 299), (300, 350), (351, 10_000))
_FUNCTION_LINES = 50


def figures(checkout: Path) -> list[str]:
    """Return the figures, each as a line of text."""
    modules = [
        path
        for path in sorted((checkout / "service" / "lakesplice").rglob("*.py"))
        if path.name != "__init__.py"
    ]
    rooms = Counter(path.parent for path in modules)
    lines = {path: path.read_text().count("\n") for path in modules}
    functions = [length for path in modules for length in _functions(path)]
    long = sum(length > _FUNCTION_LINES for length in functions)
    fullest = rooms.most_common(1)[0][1]
    return [
        f"rooms: {len(rooms)}; modules in one: at most {fullest}, median {median(rooms.values())}",
        f"modules: {len(modules)}; lines in one: at most {max(lines.values())}, median"
        f" {median(lines.values())}",
        *(
            f"  of {least} to {most} lines: {count}"
            for least, most in _MODULES_OF
            if (count := sum(least <= one <= most for one in lines.values()))
        ),
        f"functions of more than {_FUNCTION_LINES} lines: {long}, the longest {max(functions)}",
    ]


def _functions(path: Path) -> list[int]:
    return [
        node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]


if __name__ == "__main__":
    print(*figures(Path(*sys.argv[1:2] or ["."])), sep="\n")
