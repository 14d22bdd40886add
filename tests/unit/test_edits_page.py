"""The examples of docs/edits.md run, in their order, and leave what the page says."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/edits.md"


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(example, names)  # the documents' own code
    rows = names["table"].read().sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == [1, 4, 9, 20, 21]
    assert rows[0] == {"id": 1, "name": "PEN", "price": Decimal("1.80"), "stock": 5, "colour": None}
