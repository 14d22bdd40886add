"""Readers recognise old writers' mistakes by the writer's name, which a spliced file no longer
has.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import UnsupportedError
from lakesplice.splicing.metadata.writer_faults import without_ignored_bounds
from lakesplice.splicing.operations import drop_column, merge_files
from lakesplice.splicing.structures.footer import Statistics
from lakesplice.splicing.thrift.compact import EMPTY
from tests.support.in_memory import look, made, signed_by, spliced
from tests.support.parquet_parts import PLACE, opened, parquet

TABLE = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "text": [f"a long prefix {at}" for at in range(300)],
        "bytes": pa.array([b"%06d" % at for at in range(300)], pa.binary(6)),
        "count": pa.array(range(300), pa.uint32()),
    }
)
FILE = parquet(TABLE, use_dictionary=False)
DELTAS = parquet(TABLE, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
EDIT = ([3], pa.array([-1]))
OLD = "parquet-mr version 1.8.1 (build x)"


@pytest.mark.parametrize("created_by", [OLD, None])
def test_pages_that_need_the_one_before_are_not_copied_under_another_name(
    created_by: str | None,
) -> None:
    source = signed_by(DELTAS, created_by)
    for operation in (
        lambda sink: spliced(source, id=EDIT),
        lambda sink: drop_column(opened(source), "a", "id", sink),
        lambda sink: merge_files([(opened(source), "a")], sink),
    ):
        with pytest.raises(UnsupportedError) as raised:
            made(operation)
        assert raised.value.facts["reason"] == "old_delta_byte_array"
        assert "text" in str(raised.value.facts["place"])


def test_a_nested_column_too_may_need_the_page_before() -> None:
    table = pa.table({"id": [1, 2], "texts": [["a", "b"], ["c"]]})
    deltas = {"texts.list.element": "DELTA_BYTE_ARRAY"}
    source = signed_by(parquet(table, use_dictionary=False, column_encoding=deltas), OLD)
    with pytest.raises(UnsupportedError) as raised:
        spliced(source, id=([0], pa.array([5])))
    assert raised.value.facts["reason"] == "old_delta_byte_array"


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_that_deny_their_compression_are_not_copied_under_another_name(version: str) -> None:
    source = parquet(TABLE, data_page_version=version)
    assert pq.read_table(opened(spliced(source, id=EDIT))).num_rows == 300
    old = signed_by(source, "parquet-cpp version 1.5.1-SNAPSHOT")
    if version == "1.0":
        assert pq.read_table(opened(spliced(old, id=EDIT))).num_rows == 300
        return
    with pytest.raises(UnsupportedError) as raised:
        spliced(old, id=EDIT)
    assert raised.value.facts["reason"] == "old_data_page_v2"


@pytest.mark.parametrize(
    ("created_by", "trusted"),
    [
        (None, {"id", "text", "bytes", "count"}),
        ("", {"id", "text", "bytes", "count"}),
        ("somebody", {"id", "text", "bytes", "count"}),
        ("parquet-mr version 1.7.0 (build x)", {"id"}),
        ("parquet-mr version (build x)", {"id"}),
        ("parquet-cpp version 1.2.0", {"id"}),
        ("parquet-mr version 1.10.0 (build x)", {"id", "text", "bytes", "count"}),
        ("parquet-cpp version 1.3.0", {"id", "text", "bytes", "count"}),
        ("somebody version 0.1", {"id", "text", "bytes", "count"}),
    ],
)
def test_bounds_that_readers_do_not_believe_their_writer_are_not_copied_under_another_name(
    created_by: str | None, trusted: set[str]
) -> None:
    after = look(made(lambda sink: merge_files([(opened(signed_by(FILE, created_by)), "a")], sink)))
    for leaf in after.footer.leaves:
        statistics = Statistics.from_struct(after.chunk(0, leaf.column).statistics or EMPTY, PLACE)
        bounded = leaf.name in trusted
        assert (statistics.min_value is not None) is (statistics.max_value is not None) is bounded
        assert (statistics.min_legacy is not None) <= bounded
        assert statistics.null_count == 0


@pytest.mark.parametrize(
    ("created_by", "kept"), [(None, False), ("somebody", False), ("somebody version 1.0", True)]
)
def test_old_fields_of_bounds_need_a_writer_that_is_known(
    created_by: str | None, kept: bool
) -> None:
    file = look(FILE)
    text = next(leaf for leaf in file.footer.leaves if leaf.name == "text")
    bounds = Statistics(null_count=0, min_legacy=b"a", max_legacy=b"b", min_value=b"a")
    chunk = replace(file.chunk(0, text.column), statistics=bounds.to_struct())
    after = without_ignored_bounds(chunk, text, created_by, PLACE).statistics
    found = Statistics.from_struct(after or EMPTY, PLACE)
    assert (found.min_legacy is not None, found.max_legacy is not None) == (kept, kept)
    assert found.min_value == b"a"
