from __future__ import annotations

from dataclasses import replace

import pytest

from lakesplice.splicing.structures.footer import read_footer
from lakesplice.splicing.structures.old_writers import pages_need_their_predecessor, with_true_sizes
from tests.support.parquet_parts import opened, parquet, some_table

FOOTER = read_footer(
    opened(parquet(some_table(20), write_page_index=False, row_group_size=10)), "a.parquet"
)
OLD = "parquet-mr version 1.2.8 (build abc)"


@pytest.mark.parametrize(
    ("created_by", "old"),
    [
        (None, True),
        ("", True),
        ("Polars", False),
        ("impala version 1.0.0", False),
        ("parquet-mr", True),
        ("parquet-mr version 1.8.1 (build x)", True),
        ("parquet-mr version 1.8.2", False),
        ("parquet-mr version 1.15.0-SNAPSHOT", False),
    ],
)
def test_pages_of_parquet_mr_before_1_8_2_or_of_an_unnamed_writer_may_need_their_predecessor(
    created_by: str | None, old: bool
) -> None:
    assert pages_need_their_predecessor(created_by) is old


def test_chunks_that_lack_a_header_are_as_long_as_they_are() -> None:
    short = tuple(
        replace(
            group,
            chunks=tuple(
                replace(
                    chunk,
                    compressed_size=chunk.compressed_size - 15,
                    uncompressed_size=chunk.uncompressed_size - 15,
                )
                for chunk in group.chunks
            ),
        )
        for group in FOOTER.row_groups
    )
    assert with_true_sizes(short, OLD, FOOTER.start) == FOOTER.row_groups
    assert with_true_sizes(FOOTER.row_groups, OLD, FOOTER.start) == FOOTER.row_groups
    assert with_true_sizes(short, "parquet-mr version 1.2.9", FOOTER.start) is short


def test_a_gap_too_large_for_a_header_stays() -> None:
    first, second = FOOTER.row_groups
    chunk = replace(first.chunks[0], compressed_size=first.chunks[0].compressed_size - 101)
    groups = (replace(first, chunks=(chunk, *first.chunks[1:])), second)
    assert with_true_sizes(groups, OLD, FOOTER.start) == groups
