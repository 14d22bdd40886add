"""Finds keys that several rows of files have: only one of these rows could become the table's.

Files may have more keys than fit in memory. So the keys' hashes are written to temporary files by
their first bits, 16 bytes each, and each file is looked at by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa

from lakesplice.model.arrays import Unsigned

_FILES_BITS = 8
_SEEDS = (1, 2)
_SHIFT = np.uint64(64 - _FILES_BITS)


class RepeatedKeys:
    """The keys of rows, in a folder of its own. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, keys: pa.Table) -> None:
        """Add the keys of further rows; the columns are the key's. Blocks."""
        if not keys.num_rows:
            return
        frame = pl.DataFrame(keys)
        words: Unsigned = np.column_stack([frame.hash_rows(seed).to_numpy() for seed in _SEEDS])
        words = words[np.argsort(words[:, 0])]
        numbers, starts = np.unique(words[:, 0] >> _SHIFT, return_index=True)
        for number, part in zip(numbers, np.split(words, starts[1:]), strict=True):
            with (self._folder / str(number)).open("ab") as file:
                file.write(part.tobytes())

    def count(self) -> int:
        """Return how many rows have the key of another row before them. Blocks."""
        return sum(map(_repeated, self._folder.iterdir()))


def _repeated(path: Path) -> int:
    words = np.fromfile(path, np.uint64).reshape(-1, len(_SEEDS))
    return len(words) - len(np.unique(words.view("V16")))


@contextmanager
def repeated_keys() -> Iterator[RepeatedKeys]:
    """Yield a place for keys, which is deleted at the end."""
    with TemporaryDirectory(prefix="lakesplice-keys-") as folder:
        yield RepeatedKeys(Path(folder))
