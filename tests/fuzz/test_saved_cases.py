"""Inputs that once failed, or came near it, and every seed of the fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.inputs import as_file
from tests.fuzz.parquet_metadata import OF_FILES, as_input, look_at
from tests.fuzz.seeds import own_seeds

CASES = sorted((Path(__file__).parent / "cases").iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_saved_case_is_read_or_refused_by_name(case: Path) -> None:
    look_at(case.read_bytes())


def test_every_seed_is_read() -> None:
    seeds = list(own_seeds())
    assert len(seeds) > 20
    for seed in seeds:
        look_at(seed)


def test_an_input_of_a_file_is_that_file() -> None:
    from tests.support.parquet_parts import parquet, some_table

    file = parquet(some_table(20))
    for target in OF_FILES:
        given = as_input(file, target)
        assert given is not None
        assert as_file(given[1:]) == file
