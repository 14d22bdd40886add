"""Files are merged only if one footer can describe all their pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import UnsupportedError
from lakesplice.splicing.operations import merge_files
from lakesplice.splicing.structures.footer import Footer, Statistics
from lakesplice.splicing.thrift.compact import EMPTY
from tests.support.in_memory import look, made, signed_by, spliced, with_footer
from tests.support.parquet_parts import PLACE, opened, parquet

TABLE = pa.table(
    {"id": pa.array(range(300), pa.int64()), "text": [f"{at:03}" for at in range(300)]}
)
FILE = parquet(TABLE, use_dictionary=False)
ARROW, OTHER = "parquet-cpp-arrow version 26.0.0", "parquet-rs version 55.0.0"
ORIGIN = b"original.created.by"


def merged(*files: bytes) -> bytes:
    sources = [(opened(file), f"{at}.parquet") for at, file in enumerate(files)]
    return made(lambda sink: merge_files(sources, sink))


def with_keys(**pairs: str) -> Callable[[Footer], Footer]:
    def change(footer: Footer) -> Footer:
        more = [(key.replace("__", ".").encode(), value.encode()) for key, value in pairs.items()]
        return replace(footer, key_values=(*(footer.key_values or ()), *more))

    return change


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (with_keys(org__apache__spark__legacyDateTime=""), "org.apache.spark.legacyDateTime"),
        (with_keys(org__apache__spark__timeZone="Asia/Tokyo"), "org.apache.spark.timeZone"),
        (with_keys(org__apache__spark__version="2.4.8"), "org.apache.spark.version"),
        (with_keys(geo="{}"), "geo"),
        (lambda footer: replace(footer, key_values=None), "ARROW:schema"),
        (lambda footer: replace(footer, column_orders=None), "column orders"),
    ],
)
def test_files_that_are_read_in_different_ways_are_not_merged(
    change: Callable[[Footer], Footer], differs: str
) -> None:
    other = with_footer(FILE, change)
    for files in ((FILE, other), (other, FILE)):
        with pytest.raises(UnsupportedError) as raised:
            merged(*files)
        assert raised.value.facts["differ"] == [differs]
        assert raised.value.facts["path"] == "1.parquet"
    assert pq.read_table(opened(merged(other, other))).num_rows == 600


def test_files_that_two_new_versions_of_spark_wrote_are_merged() -> None:
    files = [
        with_footer(FILE, with_keys(org__apache__spark__version=version))
        for version in ("3.5.9", "4.1.0")
    ]
    assert pq.read_table(opened(merged(*files))).num_rows == 600


@pytest.mark.parametrize(
    ("writers", "exact"),
    [
        ((ARROW, ARROW), True),
        ((ARROW, OTHER), False),
        ((OTHER, ARROW), False),
        ((ARROW, None), False),
    ],
)
def test_bounds_count_as_whole_only_if_every_writer_leaves_them_whole(
    writers: tuple[str | None, ...], exact: bool
) -> None:
    both = merged(*(signed_by(FILE, writer) for writer in writers))
    assert said_to_be_exact(spliced(both, text=([5, 305], pa.array(["a", "b"])))) is exact


def test_a_former_writer_is_not_believed_when_another_has_been_at_the_file() -> None:
    ours = spliced(FILE, text=([5], pa.array(["a"])))
    assert said_to_be_exact(ours)
    theirs = signed_by(ours, OTHER)
    again = spliced(theirs, text=([7], pa.array(["b"])))
    assert not said_to_be_exact(again)
    assert not said_to_be_exact(spliced(again, text=([9], pa.array(["c"]))))
    names = (look(again).key_value(ORIGIN) or b"").decode().split("\n")
    assert [name.split()[0] for name in names] == ["parquet-cpp-arrow", "parquet-rs"]


def said_to_be_exact(data: bytes) -> bool:
    file = look(data)
    found = {
        (statistics.min_exact, statistics.max_exact)
        for group in file.footer.row_groups
        for statistics in [Statistics.from_struct(group.chunks[1].statistics or EMPTY, PLACE)]
    }
    assert found in ({(True, True)}, {(False, False)})
    return found == {(True, True)}
