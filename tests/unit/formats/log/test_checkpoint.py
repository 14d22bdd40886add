"""Checkpoints of one part and of several, their hint, and damage."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError, LakespliceError
from lakesplice.formats.log.checkpoint import (
    Checkpoint,
    checkpoint_version,
    complete_checkpoints,
    decode_hint,
    read_checkpoint,
)
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.protocol.layout import LAST_CHECKPOINT, commit_path
from lakesplice.table.protocol.snapshot import open_snapshot
from tests.support.tables import TableUnderTest, local_table

NAME = f"{3:020d}.checkpoint.parquet"
PARTS = tuple(f"{5:020d}.checkpoint.{part:010d}.{3:010d}.parquet" for part in (1, 2, 3))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableUnderTest, Path]:
    """A table of version 3 with its checkpoint, and its folder."""
    folder = tmp_path_factory.mktemp("lake")
    table = local_table(folder)
    table.create()
    for number in range(3):
        table.committed(table.ingest(files=(table.file(number),)))
    DeltaLogKeeper(folder / "shop/orders").checkpoint(3)
    return table, folder / "shop/orders/_delta_log"


def test_only_complete_checkpoints_are_found_oldest_first() -> None:
    others = [f"{3:020d}.json", "_last_checkpoint", f"{7:020d}.checkpoint.ab-cd.parquet"]
    assert complete_checkpoints([*PARTS, NAME, *others]) == (
        Checkpoint(3, (NAME,)),
        Checkpoint(5, PARTS),
    )
    assert complete_checkpoints([*PARTS[:2], NAME]) == (Checkpoint(3, (NAME,)),)
    assert [checkpoint_version(name) for name in (NAME, PARTS[0], others[0])] == [3, 5, None]


def test_the_hint_names_one_part_or_several() -> None:
    assert decode_hint(b'{"version":3,"size":9}') == Checkpoint(3, (NAME,))
    assert decode_hint(b'{"version":5,"size":9,"parts":3}') == Checkpoint(5, PARTS)


@pytest.mark.parametrize(
    "hint", [b"", b"{", b"[]", b"3", b'{"size":1}', b'{"version":3,"v2Checkpoint":{}}', b"\xff"]
)
def test_a_hint_that_is_damaged_or_too_new_is_ignored(hint: bytes) -> None:
    assert decode_hint(hint) is None


@pytest.mark.slow
def test_a_checkpoint_in_several_parts_is_read_whole(
    table: tuple[TableUnderTest, Path], tmp_path: Path
) -> None:
    newest = table[0].now()
    whole = pq.read_table(table[1] / NAME)
    copy = local_table(tmp_path)
    for path in table[0].store.list("_lakesplice/manifests/"):
        copy.store.put_new(path, table[0].store.read(path))
    third = -(-whole.num_rows // 3)
    for part in range(3):
        name = f"{3:020d}.checkpoint.{part + 1:010d}.{3:010d}.parquet"
        sink = io.BytesIO()
        pq.write_table(whole.slice(part * third, third), sink)
        copy.store.put_new(f"_delta_log/{name}", sink.getvalue())
    assert open_snapshot(copy.store) == newest
    copy.store.put_new(LAST_CHECKPOINT, b'{"version":3,"size":9,"parts":3}')
    assert open_snapshot(copy.store) == newest
    assert copy.store.size(commit_path(3)) is None


@given(data=st.data())
def test_a_damaged_checkpoint_is_read_or_named(
    table: tuple[TableUnderTest, Path], data: Any
) -> None:
    whole = (table[1] / NAME).read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    for damaged in (flipped, whole[:at]):
        try:
            list(read_checkpoint(pa.BufferReader(damaged), "the/file"))
        except LakespliceError as error:
            assert isinstance(error, CorruptFileError)  # noqa: PT017
