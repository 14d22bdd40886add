"""Folders of unit tests are in memory: what a table comes to is at stake, not the disk."""

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
