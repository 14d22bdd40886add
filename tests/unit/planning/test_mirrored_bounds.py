"""An Iceberg mirror has the bounds of the log, in Iceberg's form: no value is outside of them."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.types import Primitive
from lakesplice.planning.mirroring.files import mirror_file
from tests.unit.formats.test_stats import moments, schema_of, stats_of

FIRST_DAY = date(1970, 1, 1).toordinal()
DRAWN = {
    Primitive.LONG: st.integers(-(1 << 63), (1 << 63) - 1),
    Primitive.DATE: st.integers(1 - FIRST_DAY, date.max.toordinal() - FIRST_DAY),
    Primitive.TIMESTAMP: moments,
}


@pytest.mark.parametrize("kind", DRAWN)
@given(data=st.data())
def test_no_value_is_outside_of_the_bounds_that_a_mirror_gives(
    kind: Primitive, data: st.DataObject
) -> None:
    values = data.draw(st.lists(DRAWN[kind], min_size=1, max_size=4))
    file = BaseFile("a.parquet", 99, (Segment(1, len(values)),))
    mirrored = mirror_file(file, json.dumps(stats_of(values, kind)), schema_of(kind))
    low, high = mirrored.lower["value"], mirrored.upper["value"]
    assert isinstance(low, int)
    assert isinstance(high, int)
    slack = 999 if kind is Primitive.TIMESTAMP else 0  # in the log moments have milliseconds
    assert low <= min(values) <= low + slack
    assert high - slack <= max(values) <= high
