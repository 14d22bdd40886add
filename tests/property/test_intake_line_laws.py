"""A dead letter that is replayed at once has the same result as its record at first intake.

The formats, columns and values are those of `test_company_laws.py`, which compares each value with
what was sent. Here only the two ways into a table are compared, with any shaping and kept types.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext
from lakesplice.model.names import APPENDED
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.late_records import replay_records
from lakesplice.planning.intake.line import IntakeLine, RecordReading
from lakesplice.planning.schema.policy import DEFAULT_POLICY, Behaviour, SchemaPolicy
from lakesplice.planning.shape.masks import Mask
from lakesplice.planning.shape.metadata_columns import MetadataContent
from lakesplice.planning.shape.shaping import Shape
from tests.property.test_company_laws import FORMATS, companies
from tests.support.debezium import batch
from tests.support.drawing import examples

TOPIC = "s.shop.items"
SHAPES = (
    None,
    Shape(exclude=("v1",)),
    Shape(masks=(("v0", Mask.parse("hash")),), secret="a secret of sixteen bytes"),
    Shape(metadata=(("read_from", MetadataContent.TOPIC), ("done", MetadataContent.OP))),
)
KEEPING = SchemaPolicy(alter_column_type=Behaviour.IGNORE)


def reading_of(context: DecodeContext, shape: Shape | None, policy: SchemaPolicy) -> RecordReading:
    return RecordReading(
        table=context.table,
        declared=context.declared,
        history=context.history,
        shape=shape,
        policy=policy,
    )


def line_of(reading: RecordReading, schema: TableSchema) -> IntakeLine:
    state, known = PartitionState(Offset(0)), KnownTopic()
    return IntakeLine(reading, TOPIC, 0, schema=schema, state=state, known=known)


def narrowed(schema: TableSchema) -> TableSchema:
    """The table as it was before its source widened its integers. A TIME is no integer."""

    def is_widened(column: Column) -> bool:
        is_time = "time" in column.source_type.lower()
        return column.type.kind is Primitive.LONG and column.name not in schema.key and not is_time

    columns = [
        replace(column, type=ColumnType(Primitive.INTEGER)) if is_widened(column) else column
        for column in schema.columns
    ]
    return replace(schema, columns=tuple(columns))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_letter_replayed_at_once_is_what_its_first_intake_is(
    name: str, data: st.DataObject
) -> None:
    columns, rows, _ = data.draw(companies(FORMATS[name].sent))
    written, context = FORMATS[name].write(columns, rows)
    policy = data.draw(st.sampled_from([DEFAULT_POLICY, KEEPING]))
    reading = reading_of(context, data.draw(st.sampled_from(SHAPES)), policy)
    if data.draw(st.booleans()):
        reading = replace(reading, key=APPENDED)
    records = batch(written)
    born = line_of(reading, TableSchema())
    born.take(records, context.schemas)
    schema = born.first_schema
    if schema is None:
        return  # no record can be read, so there is no table
    if policy is KEEPING:
        schema = narrowed(schema)
    first = line_of(reading, schema)
    taken = first.take(records, context.schemas)
    end = first.report().state.next_offset
    here = records.filter(pa.compute.less(records["offset"], end))
    replayed = replay_records(
        here, reading, TOPIC, 0, schema=schema, known=KnownTopic(), schemas=context.schemas
    )
    assert replayed.failed == {one.record: (one.reason, one.detail) for one in taken.dead_letters}
    assert [t.to_pylist() for t in replayed.changes] == [t.to_pylist() for t in taken.changes]
