"""The fixtures of Flink, Maxwell, TiCDC and Debezium are judged in docs/formats.md.

Their fixtures aren't in this repository: each row of the table has our own records of the same
form, and the row's judgement is checked with these.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from lakesplice.formats.events import Decoded
from tests.support.debezium import decode_all
from tests.support.judged import debezium, flink, maxwell, ticdc
from tests.support.judged.case import Case

DOCUMENT = Path(__file__).parents[2] / "docs/formats.md"
RIGHT, REFUSED, NOT_SUPPORTED = "right", "refused rightly", "not supported"
CASES = {**flink.CASES, **maxwell.CASES, **ticdc.CASES, **debezium.CASES}


@cache
def _judgements() -> dict[str, tuple[str, str]]:
    """Judgement and remark of each row in the document's second table, by the fixture's name."""
    _, table = DOCUMENT.read_text(encoding="utf-8").split("| Fixture of another project |")
    rows = re.findall(r"^\| (\w.*?) \| ([a-z ]+) \| (.*?) ?\|$", table, re.M)
    found = {name: (judgement, remark) for name, judgement, remark in rows}
    assert len(found) == len(rows), "a fixture is judged twice"
    return found


def _rows_after(decoded: Decoded) -> list[dict[str, object]]:
    """The rows after their changes, in the order of the records and within them."""
    found = [
        (record, at, row)
        for block in decoded.blocks
        for at, (record, row) in enumerate(zip(block.rows, block.after.to_pylist(), strict=True))
        if block.after_present[at]
    ]
    return [row for _, _, row in sorted(found, key=lambda each: each[:2])]


def test_every_judgement_has_records_and_all_records_a_judgement() -> None:
    judgements = _judgements()
    assert list(judgements) == list(CASES)
    assert {judgement for judgement, _ in judgements.values()} == {RIGHT, REFUSED, NOT_SUPPORTED}


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases]
)
def test_a_fixture_is_as_it_is_judged(name: str, case: Case) -> None:
    judgement, remark = _judgements()[name]
    decoded = decode_all(case.records, case.context)
    codes = {*map(str, decoded.dead.reason), *(str(stop.code) for stop in decoded.stops)}
    if case.rows is None:
        assert judgement in (REFUSED, NOT_SUPPORTED)
        assert codes
        assert codes <= set(re.findall(r"`([a-z-]+)`", remark))
        return
    assert judgement == RIGHT
    assert codes == set()
    read = _rows_after(decoded)
    assert len(read) == len(case.rows)
    for row, expected in zip(read, case.rows, strict=True):
        assert {column: row[column] for column in expected} == expected
