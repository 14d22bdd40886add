"""Names and values of metadata columns, and their relation to digests and changed columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events import ImageBlock
from lakesplice.model.change import Op
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.rows.image_changes import to_changes
from lakesplice.planning.schema.evolution import Grows, Unfit, fit, fit_as_new
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.metadata_columns import MetadataContent, metadata_of
from lakesplice.planning.shape.shaping import Shape, shaped_schema

SOURCE = SourceSchema(
    (SourceField("id", ColumnType.parse("long"), "long"),
     SourceField("v", ColumnType.parse("string"), "string")),
    ("id",),
)  # fmt: skip
OF_CHANGE = (MetadataContent.OP_TS, MetadataContent.OP, MetadataContent.GTID)


def shape(*what: MetadataContent, prefix: str = "") -> Shape:
    return Shape(metadata=tuple((prefix + one, one) for one in what))


def grown(current: TableSchema, image: SourceSchema, policy: SchemaPolicy) -> TableSchema:
    found = fit_as_new(current, image, policy)
    assert isinstance(found, Grows)
    return found.next


BORN = grown(TableSchema(), shaped_schema(SOURCE, shape(*MetadataContent)), SchemaPolicy())


def update(moment: int, topic: str = "t") -> ImageBlock:
    """An update of one row from 'a' to 'a', as shaped with one moment and topic or others."""
    own = {
        "op_ts": pa.array([moment], pa.timestamp("us", "UTC")),
        "op": pa.array(["u"]),
        "gtid": pa.array([f"0-1-{moment}"]),
        "database_name": pa.array(["shop"]),
        "table_name": pa.array(["orders"]),
        "topic": pa.array([topic]),
    }
    image = pa.table({"id": pa.array([1], pa.int64()), "v": pa.array(["a"]), **own})
    return ImageBlock(
        schema=SOURCE,
        rows=np.array([0], np.int64),
        op=np.array([Op.UPDATE], np.int8),
        position_file=np.array([moment], np.int64),
        position_offset=np.array([moment], np.int64),
        source_ts=own["op_ts"],
        gtid=own["gtid"],
        before=image,
        before_present=np.array([True]),
        after=image,
        after_present=np.array([True]),
    )


def changed(row: dict[str, object], schema: TableSchema) -> set[str]:
    bits = row["_changed"]
    assert isinstance(bits, bytes)
    return {c.name for c in schema.columns if bits[c.id // 8] >> c.id % 8 & 1}


def test_metadata_of_the_change_is_in_every_changed_set_and_in_no_digest() -> None:
    mapping = BORN.by_source
    first, second = (to_changes(update(moment), BORN, mapping).to_pylist()[0] for moment in (1, 2))
    assert changed(first, BORN) == set(OF_CHANGE)
    assert first["op_ts"] != second["op_ts"]
    assert first["_row_digest"] == second["_before_digest"]


def test_metadata_of_the_topic_is_a_value_like_any_other() -> None:
    mapping = BORN.by_source
    one, other = (
        to_changes(update(1, topic), BORN, mapping).to_pylist()[0] for topic in ("t", "u")
    )
    assert one["_row_digest"] != other["_row_digest"]


def test_a_column_of_the_change_that_is_given_up_is_null_in_rows_that_change() -> None:
    lenient = SchemaPolicy(drop_column=Behaviour.LENIENT)
    later = grown(BORN, shaped_schema(SOURCE, shape()), lenient)
    (row,) = to_changes(update(1), later, later.by_source).to_pylist()
    assert row["op_ts"] is None
    assert changed(row, later) >= set(OF_CHANGE)


def test_a_metadata_column_with_the_name_of_one_of_the_source_parks_the_table() -> None:
    named = SourceSchema(
        (*SOURCE.fields, SourceField("Op_TS", ColumnType.parse("long"), "long")), ("id",)
    )
    for exclude in ((), ("Op_TS",)):
        image = shaped_schema(named, Shape(exclude=exclude, metadata=shape(OF_CHANGE[0]).metadata))
        found = fit(TableSchema(), image)
        assert isinstance(found, Unfit)
        assert "metadata.prefix" in found.detail
    free = shaped_schema(named, shape(MetadataContent.OP_TS, prefix="__"))
    assert [column.name for column in free.fields] == ["id", "v", "Op_TS", "__op_ts"]
    assert isinstance(fit(TableSchema(), free), Grows)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["position"], "known: op_ts"),
        (["offset"], "sent again"),
        (["partition"], "sent again"),
        (["schema_name"], "database_name"),
        (["op", "op"], "twice"),
    ],
)
def test_an_unknown_metadata_column_is_refused(names: list[str], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        metadata_of(names)
