"""Which faults `make mutants` puts into the code, and which tests it runs for them."""

from __future__ import annotations

import ast
from collections import Counter
from textwrap import dedent

from mutants.choice import all_mutants, drawn
from mutants.contexts import Contexts, in_turns
from mutants.sites import Mutant, mutants_of
from tests.support.machine import ROOT

SOURCE = dedent(
    '''
    """Text."""
    LIMIT = 3


    @cached(size=7)
    class Kept:
        def first(self, rows: int | None, *, whole: bool = True) -> list[int]:
            """More text: 1 < 2."""
            assert rows != 4
            if not whole and rows is None:
                raise ValueError("no rows" + str(5))
            log.info("reading", rows=rows < 6)
            self.seen = [at for at in range(rows) if keep(at)]
            return zip(self.seen, self.seen, strict=True)
    '''
).encode()


def found(source: bytes = SOURCE) -> list[Mutant]:
    return mutants_of("a.py", source)


def changes(source: bytes = SOURCE) -> dict[str, list[str]]:
    """What is replaced by what, by kind."""
    out: dict[str, list[str]] = {}
    for mutant in found(source):
        was = source[mutant.start : mutant.end].decode()
        out.setdefault(mutant.kind, []).append(f"{was} -> {mutant.text}")
    return out


def test_faults_are_found_in_code_and_not_in_what_is_said_of_it() -> None:
    assert changes() == {
        "constant changed": ["3 -> 2", "3 -> 4", "True -> False"],
        "and, or swapped": ["not whole and rows is None -> (not whole or rows is None)"],
        "not dropped": ["not whole -> (whole)"],
        "comparison flipped": ["rows is None -> (rows is not None)"],
        "statement removed": [
            'raise ValueError("no rows" + str(5)) -> pass',
            "self.seen = [at for at in range(rows) if keep(at)] -> pass",
        ],
        "condition reversed": ["keep(at) -> (not (keep(at)))"],
    }
    assert {mutant.function for mutant in found()} == {"", "Kept.first"}


def test_boundaries_signs_and_masks_are_changed_and_letters_are_more_than_bytes() -> None:
    source = 'x = "ä" if (a < b) & (c + 1 >= d) else [1] + e\n'.encode()
    assert changes(source)["boundary moved"] == ["a < b -> (a <= b)", "c + 1 >= d -> (c + 1 > d)"]
    assert changes(source)["plus, minus swapped"] == ["c + 1 -> (c - 1)"]
    assert [text.split(" -> ")[1] for text in changes(source)["and, or swapped"]] == [
        "((a < b) | (c + 1 >= d))"
    ]
    for mutant in found(source):
        ast.parse(mutant.applied_to(source))


def test_the_same_mutants_are_drawn_again_of_every_kind() -> None:
    mutants = all_mutants(
        ROOT, ["planning/rows/fold.py", "planning/rows/overlay.py", "table/ingest/batch_commit.py"]
    )
    once, again, other = (drawn(mutants, 40, seed, ROOT) for seed in (1, 1, 2))
    assert once == again != other
    assert len({(mutant.path, mutant.start, mutant.end) for mutant in once}) == 40
    assert len(Counter(mutant.kind for mutant in once)) > 4
    for mutant in once:
        ast.parse(mutant.applied_to((ROOT / mutant.path).read_bytes()))


def test_every_file_of_tests_has_its_turn_early() -> None:
    seconds = {"a::1": 1.0, "a::2": 2.0, "a::3": 0.5, "b::1": 9.0, "c::1": 0.1}
    assert in_turns(seconds, seconds) == ["c::1", "a::3", "b::1", "a::1", "a::2"]


def test_outside_of_functions_the_tests_of_the_module_count() -> None:
    contexts = Contexts({"a.py::f": ["t::1"], "a.py::g": ["t::2"], "b.py::f": ["t::3"]}, {})
    inside, outside = (Mutant("a.py", 1, function, "", 0, 0, "") for function in ("f", ""))
    assert contexts.tests_of(inside) == ["t::1"]
    assert contexts.tests_of(outside) == ["t::1", "t::2"]
