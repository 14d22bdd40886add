"""Schemas in the log, for other engines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.formats.log.schema_json import decode_schema, encode_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive

SCHEMA = TableSchema(
    (
        Column(0, "b", "B", ColumnType(Primitive.LONG), "BIGINT"),
        Column(1, "a", "A", ColumnType(Primitive.STRING), "TEXT"),
        Column(2, "c", "C", ColumnType(Primitive.LONG), "BIGINT"),
    ),
    ("c", "b"),
    (3,),
)


def nullable(schema: TableSchema) -> dict[str, bool]:
    return {
        field["name"]: field["nullable"] for field in json.loads(encode_schema(schema))["fields"]
    }


def test_columns_of_ours_are_required_but_in_a_table_whose_files_others_wrote() -> None:
    """Files that others wrote lack them, and a reader may refuse a file without a required one."""
    ours = {"_position_file": False, "_position_offset": False, "_is_deleted": False}
    own, adopted = nullable(SCHEMA), nullable(replace(SCHEMA, adopted=True))
    assert ours.items() <= own.items()
    assert {name: adopted[name] for name in ours} == dict.fromkeys(ours, True)
    for found in (own, adopted):
        assert {name: found[name] for name in SCHEMA.names} == {"b": False, "a": True, "c": False}


def test_a_schema_is_read_back_with_its_key_in_order() -> None:
    assert decode_schema(encode_schema(SCHEMA), "x") == SCHEMA


@pytest.mark.parametrize("lost", ["lakesplice.id", "lakesplice.source_name"])
def test_a_schema_of_another_writer_is_refused(lost: str) -> None:
    with pytest.raises(CorruptFileError, match="isn't one that Lakesplice writes"):
        decode_schema(encode_schema(SCHEMA).replace(lost, "other"), "x")
