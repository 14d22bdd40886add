"""Positions in a binlog, up to the largest one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.formats.events import DecodeContext
from lakesplice.formats.events.blocks.positions import binlog_position, binlog_positions
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.change import Op
from lakesplice.model.position import Position
from tests.support.debezium import (
    TABLE,
    compact,
    dead,
    decode_all,
    envelope_schema,
    image,
    key_schema,
    payload,
    with_schema,
)

# As the document of the format packs them: 32 bits of a file's number, 41 of offset, 21 of a row.
FILE_END, OFFSET_END, ROW_END = 1 << 32, 1 << 41, 1 << 21


@pytest.mark.parametrize(
    ("file", "offset", "row", "beyond"),
    [
        (2, 0, 0, False),
        (FILE_END - 1, OFFSET_END - 1, ROW_END - 1, False),
        (FILE_END, 0, 0, True),
        (2, OFFSET_END, 0, True),
        (2, 0, ROW_END, True),
        (2, -1, 0, True),
        (2, 0, -1, True),
    ],
)
def test_what_no_position_can_hold_is_beyond(
    file: int, offset: int, row: int, beyond: bool
) -> None:
    found = binlog_positions(
        pa.array([f"binlog.{file:06}"]),
        pa.array([offset], pa.int64()),
        pa.array([row], pa.int64()),
        np.array([Op.UPDATE], np.int8),
    )
    assert found.missing.tolist() == [False]
    assert found.beyond.tolist() == [beyond]
    place = Position(int(found.file[0]), int(found.offset[0]))
    assert binlog_position(f"binlog.{file:06}", offset, row) == (None if beyond else place)


@pytest.mark.parametrize("file", [5, None])
def test_a_binlog_file_that_is_no_text_is_a_missing_position(file: int | None) -> None:
    schema = envelope_schema()
    (source,) = (one for one in schema["fields"] if one.get("field") == "source")
    for member in source["fields"]:
        if member["field"] == "file":
            member["type"] = "int64"
    key = compact(with_schema({"id": 1}, key_schema()))
    content = payload("c", None, image(1), file=file)
    decoded = decode_all([(key, compact(with_schema(content, schema)))], DecodeContext(TABLE))
    assert dead(decoded) == {0: DeadReason.MISSING_POSITION}
