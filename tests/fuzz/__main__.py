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
    import lakesplice.splicing.source

from tests.fuzz.mutator import mutated
from tests.fuzz.parquet_metadata import TARGETS, look_at, look_at_file
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
    assert lakesplice.splicing.source
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
    if TARGETS[kind[0] % len(TARGETS)] is not look_at_file:
        changed = mutated(body, chance)
        return None if changed is None else kind + changed
    start = max(0, len(body) - 2 - int.from_bytes(body[-2:], "little"))
    footer = mutated(body[start:-2], chance)
    if footer is None or len(footer) >= 1 << 16:
        return None
    return kind + body[:start] + footer + len(footer).to_bytes(2, "little")


main()
