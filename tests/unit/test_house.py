"""The structure of the code: modules of a limited size, with names that say what they are."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.support.machine import ROOT

MODULE_LINES_MAX = 350
MODULE_LINES_MIN = 40
ROOM_MODULES_MAX = 15
# Each is one thing that no other module can take.
SHORT = {
    "apps/cli/reference.py": "is run to write docs/commands.md",
    "apps/service/batching/restart.py": "several threads share it; all of batching rests on it",
    "apps/service/page/document.py": "is run to write docs/openapi.json",
    "config/sections/dead_letters.py": "a section of the configuration",
    "config/sections/section.py": "all sections rest on it",
    "storage/system.py": "the machine's clock and randomness, and nothing else",
}
FUNCTION_LINES_MAX = 50
ARGUMENTS_WITHOUT_NAME_MAX = 6
# They take any number of labels or parts behind their other arguments.
TAKE_ANY_NUMBER = {"counter", "gauge"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "manager", "common", "misc"}
HOUSE = ROOT / "service" / "lakesplice"
MODULES = sorted((ROOT / "service").rglob("*.py"))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_modules_are_short_and_named_after_what_they_do() -> None:
    assert len(MODULES) > 100
    lines = {_name(path): path.read_text().count("\n") for path in MODULES}
    beside = {
        _name(path): path.read_text().count("\n")
        for folder in ("benchmarks", "tools", "tests")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert not [name for name, n in {**lines, **beside}.items() if n > MODULE_LINES_MAX]
    parts = [path for path in MODULES if path.name != "__init__.py"]
    short = {_name(path) for path in parts if lines[_name(path)] < MODULE_LINES_MIN}
    assert short == {f"service/lakesplice/{name}" for name in SHORT}
    assert not [name for name in lines if Path(name).stem in NAMES_THAT_SAY_NOTHING]


def test_a_room_holds_few_modules_and_says_what_it_is_offers_and_must_not_know() -> None:
    rooms = {path.parent for path in MODULES if HOUSE in path.parent.parents}
    crowded = {
        _name(room): count
        for room in sorted(rooms)
        if (count := sum(path.name != "__init__.py" for path in room.glob("*.py")))
        > ROOM_MODULES_MAX
    }
    assert not crowded
    docstrings = {
        room: ast.get_docstring(ast.parse((room / "__init__.py").read_text())) for room in rooms
    }
    assert not sorted(
        _name(room) for room, text in docstrings.items() if not text or "\n" not in text
    )


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["service", "benchmarks", "tools"])
def test_functions_are_short(folder: str) -> None:
    assert not _found(folder).long


def test_a_line_that_mypy_skips_says_why() -> None:
    skipped = re.compile(r"# type: ignore\b(?!\[[\w, -]+\]  # \S)")
    silent = [
        f"{_name(path)}:{number}"
        for folder in ("service", "benchmarks", "tools", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if skipped.search(line) and path != Path(__file__)
    ]
    assert not silent


def test_modules_that_the_code_mentions_exist() -> None:
    mentioned = re.compile(r"`([\w/]+\.py)`")
    known = [*MODULES, *(ROOT / "tests").rglob("*.py")]
    stale = [
        f"{_name(path)}: {name}"
        for path in MODULES
        for name in mentioned.findall(path.read_text())
        if not any(module.as_posix().endswith(f"/{name}") for module in known)
    ]
    assert not stale


@pytest.mark.parametrize("folder", ["service", "benchmarks", "tools"])
def test_calls_with_many_arguments_name_them(folder: str) -> None:
    assert not _found(folder).unnamed


@dataclass(frozen=True)
class _Found:
    """Functions of a folder that are long, and calls with many arguments without names."""

    long: list[str]
    unnamed: list[str]


@cache
def _found(folder: str) -> _Found:
    """Parse the modules of a folder once for both tests: they are a thousand."""
    found = _Found([], [])
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                if len(node.args) > ARGUMENTS_WITHOUT_NAME_MAX:
                    called = ast.unparse(node.func)
                    if called not in TAKE_ANY_NUMBER:
                        found.unnamed.append(f"{_name(path)}:{node.lineno} {called}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.long.extend([f"{_name(path)}:{node.name}"] if _is_long(node) else [])
    return found


def _is_long(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return (function.end_lineno or 0) - function.lineno >= FUNCTION_LINES_MAX
