"""Files of other writers, good and damaged: each is spliced correctly, rewritten, or refused with
its name.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.bounded_splice import NO_CHANGE, ONE_ROW, Result, run
from tests.support.machine import shared_dir

# Of address space, of which pyarrow's pools and threads reserve more than they use.
BYTES_MAX = 1 << 30
SECONDS_MAX = 60
REFUSALS = ("CorruptFileError", "UnsupportedError")


def _results(folder: str, what: str, scratch: Path, sixth: int | None) -> dict[str, Result]:
    """What becomes of the files, or of each sixth one, from the `sixth` on."""
    root = shared_dir("corpora", folder)
    files = sorted(root.rglob("*.parquet*"))
    assert len(files) > 5
    if sixth is not None:
        files = files[sixth % 6 :: 6]
    results = run(files, scratch, what, bytes_max=BYTES_MAX, seconds_max=SECONDS_MAX)
    return {path.name: result for path, result in results.items()}


def _faults(results: dict[str, Result]) -> list[str]:
    found = []
    for name, result in results.items():
        if result.died:
            found.append(f"{name}: died, {result.died}")
        elif result.error and (result.error not in REFUSALS or name not in result.message):
            found.append(f"{name}: {result.error} {result.message}")
        elif result.wrongs:
            found.append(f"{name} ({result.way}): {'; '.join(result.wrongs)}")
    return found


@pytest.mark.parametrize("what", [NO_CHANGE, ONE_ROW])
@pytest.mark.parametrize("folder", ["parquet-testing-data", "parquet-testing-bad_data"])
def test_every_file_is_spliced_right_or_refused_by_its_name(
    folder: str, what: str, tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    """A sixth of the files by the seed, and another sixth with a row edited; nightly all."""
    sixth = None if request.config.getoption("--nightly") else seed + 3 * (what == ONE_ROW)
    results = _results(folder, what, tmp_path, sixth)
    print(Counter(result.error or result.way for result in results.values()))
    faults = _faults(results)
    assert not faults, "\n".join(faults)
