"""Records of many shapes at once: each is decoded as it would be alone, and read only a few
times.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import combinations
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.formats.events import Decoded, decode
from lakesplice.formats.events.values.declared_types import declare
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.model.names import TableName
from tests.support.debezium import compact

COLUMNS = {"id": "bigint", "a": "int", "b": "string", "c": "decimal(8,2)", "d": "set", "e": "int"}
CONTEXT = DecodeContext(TableName("s", "t"), declare(COLUMNS))
VALUES = {"a": 1, "b": 'te"xt: {"x":1}', "c": 1.5, "d": ["p", "q"], "e": None}
SETS = [names for size in range(1, 6) for names in combinations(VALUES, size)]
HEAD = {"database": "s", "table": "t", "type": "update", "ts": 1, "primary_key_columns": ["id"]}


def record(row: int, **other: Any) -> bytes:
    names = SETS[row % len(SETS)]
    data = {"id": row, **{name: VALUES[name] for name in names}}
    old = {} if row % 3 else {names[0]: None}
    place = {"xoffset": 0, "position": f"bin.000001:{100 + row}"}
    return compact({**HEAD, **place, "data": data, "old": old, **other})


def decoded(values: list[bytes]) -> Decoded:
    offsets = np.arange(len(values))
    columns = [pa.array(values, pa.binary()), pa.array(values, pa.binary()), pa.array(offsets)]
    return decode(pa.RecordBatch.from_arrays(columns, names=["value", "key", "offset"]), CONTEXT)


def rows_of(found: Decoded) -> list[dict[str, Any]]:
    rows = [row for block in found.blocks for row in block.after.to_pylist()]
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.parametrize("damaged", [pytest.param(False, marks=pytest.mark.slow), True])
def test_many_shapes_at_once_are_decoded_as_each_by_itself(damaged: bool) -> None:
    values = [record(row) for row in range(200)]
    if damaged:
        values[50] = b'{"database":"s"'
        values[51] = record(51, data={"id": "no number", "a": 1})
        values[52] = record(52, ts="never")
        values[53] = record(53, data=[])
    together, alone = decoded(values), [decoded([value]) for value in values]
    assert rows_of(together) == [row for found in alone for row in rows_of(found)]
    dead = [row for row, found in enumerate(alone) if len(found.dead)]
    assert together.dead.rows.tolist() == dead
    assert together.dead.reason == tuple(alone[row].dead.reason[0] for row in dead)
    assert len(dead) == (4 if damaged else 0)


def test_only_the_first_record_of_a_form_is_read_strictly() -> None:
    """Else the work is that of the records times their shapes."""
    met: Counter[str] = Counter()

    def meet(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "read_json":
            met["strictly"] += 1

    values = [record(row) for row in range(600)]
    decoded(values)
    sys.setprofile(meet)
    try:
        found = decoded(values)
    finally:
        sys.setprofile(None)
    # The first shapes are tried on all records, and leave some of their own that look otherwise.
    assert len(SETS) <= len(found.blocks) <= len(SETS) + 2
    assert met["strictly"] < 2 * len(values)
