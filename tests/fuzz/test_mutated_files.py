"""Some files with changed values in every run; the fuzzer itself looks at millions."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutator import mutated_file
from tests.fuzz.parquet_metadata import OF_FILES, TARGETS, look_at
from tests.fuzz.seeds import own_seeds

SEEDS = [seed for seed in own_seeds() if TARGETS[seed[0]] in OF_FILES]


@given(st.sampled_from(range(len(SEEDS))), st.integers(0, 2**32), st.integers(1, 3))
def test_a_mutated_file_is_read_and_spliced_well_or_refused_by_name(
    seed: int, chosen: int, changes: int
) -> None:
    chance, kind, body = Random(chosen), SEEDS[seed][:1], SEEDS[seed][1:]
    for _ in range(changes):
        body = mutated_file(body, chance) or body
    look_at(kind + body)


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_a_value_is_changed_and_the_file_is_still_one(seed: bytes) -> None:
    chance = Random(5)
    found = {mutated_file(seed[1:], chance) for _ in range(30)} - {None, seed[1:]}
    assert len(found) > 5
