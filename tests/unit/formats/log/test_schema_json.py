"""Schemas in the log, for other engines."""

from __future__ import annotations

import json
from dataclasses import replace

from lakesplice.formats.log.schema_json import encode_schema
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


def test_a_column_has_its_type_its_names_and_its_place_in_the_key() -> None:
    fields = json.loads(encode_schema(SCHEMA))["fields"]
    assert fields[0] == {
        "name": "b",
        "type": "long",
        "nullable": False,
        "metadata": {
            "lakesplice.id": 0,
            "lakesplice.source_name": "B",
            "lakesplice.source_type": "BIGINT",
            "lakesplice.key_ordinal": 1,
        },
    }
    ordinals = {field["name"]: field["metadata"].get("lakesplice.key_ordinal") for field in fields}
    assert [ordinals[name] for name in SCHEMA.names] == [1, None, 0]
