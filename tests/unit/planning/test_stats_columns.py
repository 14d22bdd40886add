"""Which texts and moments get bounds in the log: those chosen with the first columns, for good."""

from __future__ import annotations

import pytest

from lakesplice.errors import UsageError
from lakesplice.formats.parquet.bloom_filters import filtered_columns
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.schema.evolution import Grows, fit
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.shape.stats_columns import chosen_by_hand

FIRST = {"id": "long", "name": "string", "at": "timestamp", "note": "string", "raw": "binary"}


def image(**types: str) -> SourceSchema:
    fields = (SourceField(name, ColumnType.parse(kind), kind) for name, kind in types.items())
    return SourceSchema(tuple(fields), ("id",))


def grown(current: TableSchema, source: SourceSchema, *names: str) -> TableSchema:
    verdict = fit(current, source, SchemaPolicy(stats_columns=names))
    assert isinstance(verdict, Grows)
    return verdict.next


def bounded(schema: TableSchema) -> list[str]:
    return [column.name for column in schema.columns if column.id in schema.bounded]


def test_a_setting_counts_as_far_as_a_table_has_such_texts_and_moments() -> None:
    schema = grown(TableSchema(), image(**FIRST), "name", "at", "raw", "id", "of_another_table")
    assert bounded(schema) == ["name", "at"]
    assert bounded(grown(TableSchema(), image(**FIRST))) == []


def test_a_table_keeps_the_stats_columns_that_it_was_created_with() -> None:
    schema = grown(TableSchema(), image(**FIRST), "name")
    later = grown(schema, image(**FIRST, city="string"), "note", "city")
    assert bounded(later) == ["name"]


def test_whether_base_files_have_bloom_filters_is_decided_with_the_first_columns() -> None:
    for asked in (True, False):
        first = fit(TableSchema(), image(**FIRST), SchemaPolicy(bloom_filters=asked))
        assert isinstance(first, Grows)
        assert filtered_columns(first.next) == (("id",) if asked else ())
        more = image(**FIRST, city="string")
        later = fit(first.next, more, SchemaPolicy(bloom_filters=not asked))
        assert isinstance(later, Grows)
        assert later.next.bloom_filters is asked


@pytest.mark.parametrize(("name", "why"), [("raw", "other types"), ("nme", "lacks")])
def test_by_hand_a_name_that_can_have_no_bounds_is_refused(name: str, why: str) -> None:
    schema = grown(TableSchema(), image(**FIRST))
    assert bounded(chosen_by_hand(schema, ["note"])) == ["note"]
    with pytest.raises(UsageError, match=why):
        chosen_by_hand(schema, [name])
