"""Small base files that a compaction writes as one file, or a single one that it writes whole, have
the rows, counts and images that they have if each is spliced.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.address import BaseFile, Cube, Segment
from lakesplice.model.change import Op
from lakesplice.model.manifest import ChangeFeed, Manifest
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.upkeep import gathering
from lakesplice.planning.upkeep.gathering import gatherings
from lakesplice.table.files.base_files import open_base
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.compact import Compacted, compact_files
from tests.support.drawing import examples
from tests.support.made import MadeTable
from tests.support.simulated import memory_folder

SCHEMA = TableSchema(
    (
        Column(0, "id", "id", ColumnType.parse("long"), "long"),
        Column(1, "price", "price", ColumnType.parse("decimal(5,2)"), "decimal(5,2)"),
        Column(2, "note", "note", ColumnType.parse("string"), "string"),
    ),
    ("id",),
    (0, 3),
)
FILES_MAX, ROWS = 6, 3
KEYS = FILES_MAX * ROWS
LOW, HIGH = (Decimal("-999.99"), ""), (Decimal("999.99"), "x")
CHANGE = st.tuples(
    st.integers(0, KEYS - 1), st.sampled_from((LOW, HIGH, (None, "x"), (None, None), "delete"))
)
DELTAS = st.lists(st.lists(CHANGE, min_size=1, max_size=6), min_size=1, max_size=5)


def row(key: int, values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(SCHEMA.names, (key, *values), strict=True))


def made(folder: Path, files: int, deltas: Sequence[Sequence[tuple[int, Any]]]) -> MadeTable:
    table = MadeTable(folder, SCHEMA)
    table.insert(*([row(at * ROWS + n, LOW) for n in range(ROWS)] for at in range(files)))
    for delta in deltas:
        table.change([change(key % (files * ROWS), to) for key, to in delta])
    return table


def change(key: int, to: Any) -> tuple[Op, dict[str, Any]]:
    return (Op.DELETE, row(key, LOW)) if to == "delete" else (Op.UPDATE, row(key, to))


def compacted(
    table: MadeTable, manifest: Manifest, paths: Sequence[str], files_min: int = 2
) -> Compacted:
    rewriter = best_rewriter()
    return compact_files(table.store, manifest, paths, rewriter, table.entropy, files_min=files_min)


def rows_of(table: MadeTable, parts: Sequence[Compacted]) -> Mapping[int, pa.Table]:
    """The rows of each file group that was written."""
    found = {}
    for new in {new.base.path: new for part in parts for new in part.replaced.values()}.values():
        with open_base(table.store, new.base, table.schema) as reader:
            rows = pa.concat_tables([reader.read(at) for at in range(len(reader.row_groups))])
        for segment in new.base.segments:
            found[segment.group] = rows.slice(0, segment.rows).combine_chunks()
            rows = rows.slice(segment.rows)
    return found


def images_of(table: MadeTable, parts: Sequence[Compacted]) -> list[str]:
    files = [one.file.path for part in parts for one in part.images or ()]
    read = (pq.read_table(pa.BufferReader(table.store.read(path))) for path in files)
    return sorted(str(image) for images in read for image in images.to_pylist())


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(st.integers(1, FILES_MAX), DELTAS, st.booleans())
def test_files_written_as_one_have_the_rows_of_files_spliced_one_by_one(
    files: int, deltas: list[list[tuple[int, Any]]], repeated: bool
) -> None:
    folder = Path(tempfile.mkdtemp(dir=memory_folder()))
    try:
        table = made(folder, files, deltas)
        if repeated:  # the positions of these changes are at or below those of their rows
            table._next = 0
            table.change([change(key, HIGH) for key in range(0, files * ROWS, ROWS)])
        manifest = replace(table.manifest, feed=ChangeFeed(0))
        paths = [path for path, file in manifest.files.items() if manifest.waiting_in(file)]
        together = compacted(table, manifest, [*manifest.files], files_min=1)
        alone = [compacted(table, manifest, [path]) for path in paths]
        if together.replaced:
            assert len({new.base.path for new in together.replaced.values()}) == 1
            assert list(together.replaced) == paths
        theirs, ours = rows_of(table, alone), rows_of(table, [together])
        assert theirs.keys() <= ours.keys()
        for group, rows in theirs.items():
            assert ours[group].equals(rows)
        assert images_of(table, [together]) == images_of(table, alone)
        counts = sum((Counter(one.counts) for one in alone), Counter[str]())
        for name in ("changes", "stale", "unlinked", "rows"):
            assert together.counts.get(name, 0) == counts[name]
        waiting = [delta.file.path for delta in manifest.deltas]
        assert [*together.consumed] == [path for path in waiting if path in together.consumed]
        for path in waiting:
            united = frozenset[int]().union(*(one.consumed.get(path, ()) for one in alone))
            assert together.consumed.get(path, frozenset()) == united
        if not repeated:  # otherwise `live` has changes that have no effect
            table.compact(paths)
            assert Table(table.store).read().sort_by("id").to_pylist() == table.live()
            assert not table.manifest.deltas
    finally:
        shutil.rmtree(folder, ignore_errors=True)


FILES = st.lists(
    st.tuples(
        st.sampled_from((gathering.FILE_BYTES_MAX, gathering.FILE_BYTES_MAX + 1))
        | st.integers(1, 2 * gathering.FILE_BYTES_MAX),
        st.sampled_from((("a",), ("b",))),
        st.sampled_from((None, None, None, Cube((1,), 1))),
    ),
    max_size=40,
)


@given(FILES, st.integers(1, 3))
def test_a_gathering_is_bounded_and_of_one_partition_and_no_file_is_in_two(
    drawn: list[tuple[int, tuple[str], Cube | None]], files_min: int
) -> None:
    files = [
        BaseFile(f"base/{at}", size, (Segment(at, 1),), partition=partition, cube=cube)
        for at, (size, partition, cube) in enumerate(drawn)
    ]
    found = gatherings(files, files_min)
    for part in found:
        assert len(part) >= files_min
        assert len({file.partition for file in part}) == 1
        assert all(f.cube is None and f.bytes <= gathering.FILE_BYTES_MAX for f in part)
        assert sum(file.bytes for file in part) <= gathering.GATHERED_BYTES_MAX
    paths = [file.path for part in found for file in part]
    assert len(set(paths)) == len(paths)
    left = Counter(
        file.partition
        for file in files
        if file.path not in paths and file.cube is None and file.bytes <= gathering.FILE_BYTES_MAX
    )
    # What is left of a partition is too little, or the end of files that make several gatherings.
    assert all(count < files_min for count in left.values())
