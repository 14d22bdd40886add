"""Which of the source's columns a table has, and the values of masked ones."""

from __future__ import annotations

import hmac
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events import DecodeContext, decode
from lakesplice.model.names import TableName
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.shape.masks import Mask, MaskKind, masked, masks_of
from lakesplice.planning.shape.metadata_columns import RecordOrigin
from lakesplice.planning.shape.shaping import Shape, shaped, shaped_schema
from lakesplice.testing.shop import Database
from tests.support.shaped import PEOPLE


def schema(**types: str) -> SourceSchema:
    fields = tuple(SourceField(name, ColumnType.parse(kind), kind) for name, kind in types.items())
    return SourceSchema(fields, ("id",))


def masking(secret: str = "pepper", **masks: str) -> Shape:
    return Shape(masks=masks_of(masks), secret=secret)


def images(shape: Shape, *rows: tuple[Any, ...]) -> tuple[SourceSchema, pa.Table, pa.Table]:
    """The schema of the shop's people by this shape, and the images before and after the changes
    that insert rows and then change their age.
    """
    database = Database((PEOPLE,), seed=1, with_schemas=True)
    database.insert("people", list(rows))
    database.update("people", [(row[0],) for row in rows], lambda old: (*old[:3], 99))
    events = database.drain()
    records = pa.record_batch(
        {
            "offset": pa.array(range(len(events)), pa.int64()),
            "timestamp": pa.array([0] * len(events), pa.int64()),
            "key": pa.array([event.key for event in events], pa.binary()),
            "value": pa.array([event.value for event in events], pa.binary()),
        }
    )
    context = DecodeContext(TableName.from_topic(events[0].topic))
    (block,) = shaped(
        decode(records, context), shape, RecordOrigin(events[0].topic, context.table)
    ).blocks
    return block.schema, block.before, block.after


def test_columns_that_are_not_included_or_are_excluded_are_left_out() -> None:
    people = schema(id="long", name="string", email="string", age="integer")
    kept = {
        Shape(): ["id", "name", "email", "age"],
        Shape(include=("name",)): ["id", "name"],
        Shape(exclude=("e*", "age")): ["id", "name"],
        Shape(include=("*a*",), exclude=("name",)): ["id", "email", "age"],
    }
    for shape, names in kept.items():
        found = shaped_schema(people, shape)
        assert [column.name for column in found.fields] == names
        assert found.left_out == {"id", "name", "email", "age"} - set(names)


def test_images_before_and_after_are_shaped_alike() -> None:
    shape = Shape(exclude=("name",), masks=masks_of({"email": "truncate(2)", "age": "redact"}))
    found, before, after = images(shape, (1, "Ann", "ann@x", 30), (2, "Bo", None, None))
    assert [column.name for column in found.fields] == ["id", "email", "age"]
    assert after.column("email").to_pylist() == ["an", None, "an", None]
    assert before.column("email").to_pylist()[2:] == ["an", None]
    assert after.column("age").null_count == 4


def hashed(value: bytes, secret: bytes = b"pepper") -> str:
    """The hash by another implementation."""
    return hmac.new(secret, value, "sha256").hexdigest()[:32]


def test_a_hash_is_the_hmac_of_the_value_as_text() -> None:
    _, _, after = images(masking(email="hash", age="hash"), (1, "Ann", "ann@x", 30))
    assert after.column("email").to_pylist() == [hashed(b"ann@x")] * 2
    assert after.column("age").to_pylist() == [hashed(b"30"), hashed(b"99")]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("decimal(6,2)", Decimal("1.50"), b"1.50"),
        ("binary", b"\xff\0", b"\xff\0"),
        ("date", date(1970, 1, 3), b"2"),
        ("timestamp", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), b"1000000"),
        ("boolean", True, b"true"),
    ],
)
def test_a_hash_is_of_the_value_as_text_in_every_type(kind: str, value: Any, text: bytes) -> None:
    column = ColumnType.parse(kind)
    found = masked(pa.array([value, None], column.arrow), column, Mask(MaskKind.HASH), "s")
    assert found.to_pylist() == [hashed(text, b"s"), None]


def test_another_mask_or_secret_is_another_type_of_the_column() -> None:
    people = schema(id="long", email="string")
    shapes = [
        Shape(),
        masking(email="redact"),
        masking(email="truncate(3)"),
        masking(email="truncate(4)"),
        masking(email="hash"),
        masking("salt", email="hash"),
    ]
    types = {shaped_schema(people, shape).fields[1].source_type for shape in shapes}
    assert len(types) == len(shapes)
    assert not any("pepper" in kind or "salt" in kind for kind in types)


def test_a_key_can_be_hashed_and_nothing_else_and_only_texts_truncated() -> None:
    people = schema(id="long", age="integer", email="string")
    key = shaped_schema(people, masking(id="hash")).fields[0].type
    assert key is not None
    assert key.name == "string"
    assert shaped_schema(people, masking(id="redact")).fields[0].type is None
    assert shaped_schema(people, masking(age="truncate(1)")).fields[1].type is None
    assert shaped_schema(people, masking(email="truncate(1)")).fields[2].type is not None


def test_the_default_of_a_masked_column_is_masked() -> None:
    column = SourceField("v", ColumnType.parse("string"), "string", "plain")
    image = SourceSchema((column,), ("id",))
    assert shaped_schema(image, masking(v="redact")).fields[0].fill == "***"
    assert shaped_schema(image, masking(v="truncate(2)")).fields[0].fill == "pl"


@pytest.mark.parametrize("text", ["", "hash(3)", "truncate", "truncate(-1)", "md5"])
def test_an_unknown_mask_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Mask.parse(text)


def test_a_shape_does_not_show_its_secret() -> None:
    assert "pepper" not in repr(masking(email="hash"))
