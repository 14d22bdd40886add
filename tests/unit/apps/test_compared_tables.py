"""Which columns of a table are compared with the source, and why others aren't."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from lakesplice.apps.verifying.compared_table import (
    ComparedTable,
    NotComparable,
    compared_table,
)
from lakesplice.apps.verifying.known_causes import note_of
from lakesplice.apps.verifying.report import ComparisonOutcome, DifferenceKind, TableReport
from lakesplice.model.moments import EpochMs
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.column_presence import ColumnPresence
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.columns import DatabaseColumn
from lakesplice.storage.source.tables import SourceTable

_SOURCE = SourceTable(
    "shop",
    "items",
    (
        DatabaseColumn("id", "bigint(20)", optional=False),
        DatabaseColumn("title", "varchar(20)", "utf8mb4", "utf8mb4_bin"),
        DatabaseColumn("views", "bigint(20) unsigned"),
        DatabaseColumn("seen", "timestamp"),
    ),
    ("id",),
    "2026",
    unique=(("id",),),
)
_STATE = SourceState("p.shop.items", "t", ordering=Ordering.BINLOG)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _column(at: int, name: str, type_: str, **more: Any) -> Column:
    return Column(
        at,
        name,
        more.pop("source_name", name),
        ColumnType.parse(type_),
        more.pop("source_type", type_),
        **more,
    )


def _compared(*columns: Column, insert_only: bool = False) -> ComparedTable | NotComparable:
    schema = TableSchema((_column(1, "id", "long"), *columns), ("id",), (0, 1 + len(columns)))
    return compared_table(schema, _STATE, _SOURCE, quick=False, insert_only=insert_only)


@pytest.mark.parametrize(("copy", "told"), [("name", "name"), ("title", "title in the lake")])
def test_a_renamed_column_is_compared_once_under_its_present_name(copy: str, told: str) -> None:
    found = _compared(
        _column(2, "title_2", "string", source_name="title"),
        _column(3, copy, "string", source_name="", copy_of=2),
    )
    assert isinstance(found, ComparedTable)
    assert found.stored == {"id": "id", "title": "title_2"}
    assert found.not_compared == {told: ANY, "views": ANY, "seen": ANY}
    assert "it repeats a renamed column" in found.not_compared[told]


def test_a_shard_s_column_that_only_other_shards_renamed_is_compared_under_its_former_name() -> (
    None
):
    columns = _column(1, "id", "long"), _column(2, "title", "string")
    before = TableSchema(columns, ("id",), (0, 2))
    renamed = _column(2, "name", "string"), _column(3, "later", "string")
    schema = before.with_columns(renamed[1:], ("id",), renamed[:1])
    presences = {column: ColumnPresence(Position(1, 1)) for column in (1, 2)}
    shard = replace(_STATE, shard=(("database_name", "shop"),), presences=presences)
    found = compared_table(schema, shard, _SOURCE, quick=False, insert_only=False)
    assert isinstance(found, ComparedTable)
    assert found.stored == {"id": "id", "title": "name"}
    assert found.unread == (), "the shard never had the other column"
    alone = compared_table(schema, _STATE, _SOURCE, quick=False, insert_only=False)
    assert isinstance(alone, ComparedTable)
    assert alone.not_compared["name"] == "the database has no such column"
    assert alone.unread == ("name", "later")


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (_column(2, "title", "string", source_type="masked:redact"), "masked"),
        (_column(2, "title", "string", source_type="computed:upper(id)"), "computed"),
        (_column(2, "title", "integer"), "can't be read as the integer"),
        (_column(2, "title", "string", source_name=""), "the source no longer has this column"),
        (_column(2, "gone", "string"), "the database has no such column"),
    ],
)
def test_a_column_that_has_other_values_than_the_database_is_left_out_with_the_reason(
    column: Column, why: str
) -> None:
    found = _compared(column)
    assert isinstance(found, ComparedTable)
    assert list(found.stored) == ["id"]
    assert why in found.not_compared[column.name]


@pytest.mark.parametrize(
    ("column", "source", "lake", "cause"),
    [
        ("views", None, -1, "bigint.unsigned.handling.mode"),
        ("views", None, 0, ""),
        ("views", 5, -1, ""),
        ("seen", _EPOCH, None, "TIMESTAMP of zero"),
        ("seen", _EPOCH, _EPOCH + timedelta(1), ""),
        ("seen", _EPOCH + timedelta(1), None, ""),
    ],
)
def test_what_the_connector_does_to_a_value_is_known_as_the_cause_and_nothing_else_is(
    column: str, source: Any, lake: Any, cause: str
) -> None:
    found = _compared(_column(2, "views", "long"), _column(3, "seen", "timestamp"))
    assert isinstance(found, ComparedTable)
    note = note_of(found, DifferenceKind.CHANGED, {column: (source, lake)})
    assert cause in note if cause else note == ""


def test_a_row_that_an_insert_only_table_did_not_change_is_explained() -> None:
    found = _compared(_column(2, "views", "long"), insert_only=True)
    assert isinstance(found, ComparedTable)
    assert "as they were inserted" in note_of(found, DifferenceKind.CHANGED, {"views": (2, 1)})


def test_a_history_table_is_not_compared_with_rows_that_have_one_version() -> None:
    columns = _column(1, "id", "long"), _column(2, "_history_position", "string")
    schema = TableSchema(columns, ("id", "_history_position"), (0, 2))
    found = compared_table(schema, _STATE, _SOURCE, quick=False, insert_only=True)
    assert isinstance(found, NotComparable)
    assert "keeps no earlier versions" in found.reason


def test_rows_that_were_not_examined_count_as_undecided_wherever_the_result_is_told() -> None:
    report = TableReport("shop.items", ComparisonOutcome.UNSETTLED, unsettled=2, unexamined=3)
    assert report.result("p.shop.items", EpochMs(0)).unsettled == 5
    assert report.as_arguments["unsettled"] == 5
