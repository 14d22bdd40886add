"""GeoParquet's bounds of a column are removed if its values change."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.operations import append_rows, replace_column
from lakesplice.splicing.splice import splice
from lakesplice.splicing.whole_rewrite import rewrite_whole
from tests.support.in_memory import edits_of, made
from tests.support.parquet_parts import opened, parquet

POINT = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [0, 0, 1, 1], "crs": None}
SAID = {"version": "1.1.0", "primary_column": "at", "columns": {"at": POINT, "home": POINT}}
TABLE = pa.table({"id": [1, 2], "at": [b"a", b"b"], "home": [b"c", b"d"]})
NEW = edits_of({"at": ([0], pa.array([b"z"]))})
AT = TABLE.schema.field("at")


def source(said: str | bytes) -> pa.NativeFile:
    return opened(parquet(TABLE.replace_schema_metadata({"geo": said})))


def geo(data: bytes) -> bytes:
    found: bytes = pq.read_metadata(opened(data)).metadata[b"geo"]
    return found


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        (lambda sink, file: splice(file, "a", NEW, sink), {"at"}),
        (lambda sink, file: splice(file, "a", Edits(), sink), set()),
        (lambda sink, file: append_rows(file, "a", [TABLE], sink), {"at", "home"}),
        (lambda sink, file: replace_column(file, "a", AT, lambda old: old, sink), {"at"}),
    ],
)
def test_bounds_go_with_the_values_they_are_of(
    operation: Callable[[Any, pa.NativeFile], object], changed: set[str]
) -> None:
    found = json.loads(geo(made(lambda sink: operation(sink, source(json.dumps(SAID))))))
    assert found["version"] == SAID["version"]
    for name, column in found["columns"].items():
        assert ("bbox" not in column) is (name in changed)
        assert column["geometry_types"] == ([] if name in changed else ["Point"])
        assert column["encoding"] == "WKB"


def test_bounds_go_in_a_plain_rewrite_too() -> None:
    sink = pa.BufferOutputStream()
    rewrite_whole(source(json.dumps(SAID)), "a", NEW, sink)
    found = json.loads(geo(sink.getvalue().to_pybytes()))["columns"]
    assert "bbox" not in found["at"]
    assert found["home"] == POINT


@pytest.mark.parametrize("said", [b"no json", b"[" * 100_000, b"[]", b'{"columns": 1}', b"\xff"])
def test_geography_that_is_not_as_specified_is_kept(said: bytes) -> None:
    assert geo(made(lambda sink: splice(source(said), "a", NEW, sink))) == said
