"""Folders of unit tests are in memory, since these tests are about tables, not about the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.simulated import folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """An empty folder that is gone when the test ends."""
    with folder() as made:
        yield made.resolve()
