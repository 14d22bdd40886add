"""Whatever is done to a table with bounds of texts and moments, and bloom filters of its keys: a
reader that skips files by them finds every row. Only another reader can tell; the bounds themselves
are tested in unit/formats.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice import Table
from lakesplice.model.names import IS_DELETED
from lakesplice.planning.upkeep.file_merge import FileMergePolicy
from tests.support.drawing import examples
from tests.support.simulated import folder

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
LONG = "b" * 32
NAMES = ["", "a", "Ada", LONG, LONG + "c", LONG + "d", "caf\u00e9", "\U0001f600" * 33]
ADDED = "2nd"  # deltalake has to know of such a name that it is one
STEPS = ["put", "put", "put", "widen", "delete", "compact", "merge", "purge", "optimize"]
values = st.tuples(
    st.none() | st.sampled_from(NAMES),
    st.none() | st.integers(-2_000, 2_000).map(lambda us: MOMENT + timedelta(microseconds=us)),
)
steps = st.lists(
    st.tuples(st.sampled_from(STEPS),
              st.lists(st.tuples(st.integers(0, 20), values), min_size=1, max_size=6)),
    min_size=2,
    max_size=8,
)  # fmt: skip


def rows(given_: dict[int, tuple[str | None, datetime | None]]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(given_, pa.int64()),
            "name": pa.array([name for name, _ in given_.values()], pa.string()),
            "at": pa.array([at for _, at in given_.values()], pa.timestamp("us", "UTC")),
        }
    )


def step(table: Table, what: str, drawn: dict[int, Any]) -> None:
    match what:
        case "put":
            table.upsert(rows(drawn), merge=False, fill_new_rows=True)
        case "widen":
            number = pa.array([key if key % 2 else None for key in drawn], pa.int64())
            table.upsert(rows(drawn).append_column(ADDED, number), merge_schema=True)
        case "delete":
            table.upsert(delete=rows(drawn).select(["id"]))
        case "compact":
            table.compact()
        case "merge":
            table.merge_files(policy=FileMergePolicy(files_max=2))
        case "optimize":
            table.optimize(["name"])
        case _:
            table.purge(older_than_hours=0)


def require_found(path: Path, truth: pa.Table) -> None:
    """Every value is found by a filter in engines that skip files, as often as it is there."""
    delta = QueryBuilder().register("t", DeltaTable(path))
    for column in ("name", "at"):
        for value in truth[column].unique():
            if not value.is_valid:
                continue
            meant = truth.filter(pc.equal(truth[column], value)).num_rows
            literal = (
                json.dumps(value.as_py(), ensure_ascii=False).replace('"', "'")
                if column == "name"
                else f"TIMESTAMP '{value.as_py():%Y-%m-%d %H:%M:%S.%f}+00:00'"
            )
            where = f"NOT {IS_DELETED} AND {column} = {literal}"
            found = delta.execute(f"SELECT id FROM t WHERE {where}").read_all()
            assert len(found) == meant, (column, value)


def require_nulls(path: Path, truth: pa.Table) -> None:
    """A reader that takes missing bounds for null finds the nulls of a column that files lack."""
    files = DeltaTable(path).to_pyarrow_dataset()
    for asked in (pc.field(ADDED).is_null(), pc.field(ADDED).is_valid()):
        live = pc.field(IS_DELETED) == pc.scalar(False)  # no bounds say anything of it
        found = files.to_table(columns=["id"], filter=live & asked)
        assert found.num_rows == truth.filter(asked).num_rows


def require_filters(path: Path, table: Table) -> None:
    """DuckDB's bloom filters exclude no key of their row group, and each row group has one."""
    for file in table.snapshot.manifest.files:
        name = str(path / file)
        for key in pq.read_table(name, columns=["id"])["id"].to_pylist():
            probed = f"parquet_bloom_probe('{name}', 'id', {key})"
            asked = f"select bool_and(bloom_filter_excludes) from {probed}"
            assert duckdb.sql(asked).fetchall() == [(False,)], (file, key)
        footer = pq.read_metadata(name)
        for group in range(footer.num_row_groups):
            assert footer.row_group(group).column(0).bloom_filter_offset


@given(steps)
@settings(max_examples=examples(25), deadline=None)
def test_no_row_is_lost_to_a_reader_that_skips_files(drawn: list[tuple[str, Any]]) -> None:
    with folder() as path:
        table = Table.create(
            path / "t",
            rows({0: ("Ada", MOMENT)}),
            key=["id"],
            stats_columns=["name", "at"],
            bloom_filters=True,
        )
        for what, changes in drawn:
            step(table, what, dict(changes))
        table.compact()
        require_found(path / "t", table.read())
        if ADDED in table.schema.names:
            require_nulls(path / "t", table.read())
        require_filters(path / "t", table)
