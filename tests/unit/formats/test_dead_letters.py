"""Dead letters keep every byte, and any Avro tool reads them."""

from __future__ import annotations

import io

import polars as pl
import pyarrow as pa
import pytest
from avro.datafile import DataFileReader
from avro.io import DatumReader
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.formats.dead_letters import (
    DEAD_LETTER_SCHEMA,
    decode_dead_letters,
    encode_dead_letters,
)

ROWS = [
    {
        "topic": "shop.orders", "partition": 2, "offset": 1 << 40, "timestamp": 1795247776000,
        "key": b"\x00\xff", "value": b"not JSON \xf0\x9f", "reason": "not-json", "detail": "ünï 😀",
        "headers": "[[\"h\", null]]",
        "first_seen": 1795247776001, "last_seen": 1 << 42, "attempts": 3,
        "state_before": "{}", "behind_file": 7, "behind_offset": 1 << 40,
    },
    {
        "topic": "shop.orders", "partition": 0, "offset": 0, "timestamp": -1,
        "key": None, "value": b"", "reason": "empty", "detail": "",
        "headers": "[]", "first_seen": 0, "last_seen": 0, "attempts": 0,
        "state_before": "", "behind_file": -1, "behind_offset": -1,
    },
]  # fmt: skip


def letters(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=DEAD_LETTER_SCHEMA)


def test_dead_letters_are_read_back_unchanged() -> None:
    assert decode_dead_letters(encode_dead_letters(letters(ROWS)), path="x").to_pylist() == ROWS


def test_a_file_from_before_times_and_headers_were_kept_is_read() -> None:
    older = letters(ROWS).select(DEAD_LETTER_SCHEMA.names[:8])
    sink = io.BytesIO()
    frame = pl.from_arrow(older)
    assert isinstance(frame, pl.DataFrame)
    frame.write_avro(sink, compression="uncompressed", name="lakesplice_dead_letter")
    times = {"headers": "[]", "first_seen": 0, "last_seen": 0, "attempts": 0}
    later = {**times, "state_before": "", "behind_file": -1, "behind_offset": -1}
    read = decode_dead_letters(sink.getvalue(), path="x")
    assert read.to_pylist() == [{**row, **later} for row in ROWS]


def test_an_empty_list_of_dead_letters_is_a_file() -> None:
    assert decode_dead_letters(encode_dead_letters(letters([])), path="x").num_rows == 0


def test_the_official_avro_package_reads_them() -> None:
    data = encode_dead_letters(letters(ROWS))
    with DataFileReader(io.BytesIO(data), DatumReader()) as reader:
        assert list(reader) == ROWS


_text = st.text(st.characters(codec="utf-8"), max_size=20)


@pytest.mark.slow
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "topic": _text,
                "partition": st.integers(0, 2**31 - 1),
                "offset": st.integers(0, 2**63 - 1),
                "timestamp": st.integers(-(2**63), 2**63 - 1),
                "key": st.none() | st.binary(max_size=20),
                "value": st.none() | st.binary(max_size=300),
                "reason": _text,
                "detail": _text,
                "headers": _text,
                "first_seen": st.integers(0, 2**63 - 1),
                "last_seen": st.integers(0, 2**63 - 1),
                "attempts": st.integers(0, 2**31 - 1),
                "state_before": _text,
                "behind_file": st.integers(-1, 2**63 - 1),
                "behind_offset": st.integers(-1, 2**63 - 1),
            }
        ),
        max_size=20,
    )
)
def test_any_dead_letters_are_read_back_unchanged(rows: list[dict[str, object]]) -> None:
    assert decode_dead_letters(encode_dead_letters(letters(rows)), path="x").to_pylist() == rows


@given(st.binary(max_size=400), st.integers(0, 10_000))
def test_damaged_files_give_letters_or_a_named_error(damage: bytes, at: int) -> None:
    """That letters are the right ones is the checksum's to say."""
    data = encode_dead_letters(letters(ROWS))
    at %= len(data)
    for damaged in (data[:at], data[:at] + damage, damage):
        try:
            decoded = decode_dead_letters(damaged, path="here.avro")
        except CorruptFileError as error:
            assert error.facts["path"] == "here.avro"  # noqa: PT017  # either outcome is right
        else:
            assert decoded.schema == DEAD_LETTER_SCHEMA


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"PAR1", b"\x00" * 100])
def test_other_bytes_are_named_as_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_dead_letters(data, path="here.avro")
