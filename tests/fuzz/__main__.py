"""Run the fuzzer: `python -m tests.fuzz FOLDER [libFuzzer's options]`.

FOLDER keeps what it learns and is filled with seeds at first. An input that fails is written as
`crash-...` into the working folder; once it is understood it belongs into tests/fuzz/cases under a
name that says what it is.
"""

from __future__ import annotations

import os
import sys
from hashlib import blake2b
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["lakesplice.splicing"]):
    import lakesplice.splicing.splice

from tests.fuzz.mutator import mutated, mutated_file
from tests.fuzz.parquet_metadata import OF_FILES, TARGETS, look_at
from tests.fuzz.seeds import corpus_seeds, own_seeds

CASES = Path(__file__).parent / "cases"
INPUT_BYTES_MAX = 8192


def main() -> None:
    """Write the seeds, then fuzz until stopped."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    shared = Path(os.environ.get("SHARED_CORPORA") or Path(__file__).parents[3] / "shared")
    saved = (case.read_bytes() for case in CASES.iterdir())
    for seed in (*own_seeds(), *corpus_seeds(shared / "corpora"), *saved):
        (folder / blake2b(seed, digest_size=10).hexdigest()).write_bytes(seed)
    assert lakesplice.splicing.splice.__name__
    options = [f"-max_len={INPUT_BYTES_MAX}", "-timeout=20", *sys.argv[2:]]
    atheris.Setup([sys.argv[0], str(folder), *options], look_at, custom_mutator=mutate)
    atheris.Fuzz()


def mutate(data: bytes, size_max: int, seed: int) -> bytes:
    """Change a value of the input's structure or, every other time, bytes as libFuzzer does."""
    chance = Random(seed)
    changed = _mutated(data, chance) if len(data) > 3 and chance.random() < 0.5 else None
    if changed is None or len(changed) > size_max:
        return bytes(atheris.Mutate(data, size_max))
    return changed


def _mutated(data: bytes, chance: Random) -> bytes | None:
    kind, body = data[:1], data[1:]
    of_file = TARGETS[kind[0] % len(TARGETS)] in OF_FILES
    changed = mutated_file(body, chance) if of_file else mutated(body, chance)
    return None if changed is None else kind + changed


main()
