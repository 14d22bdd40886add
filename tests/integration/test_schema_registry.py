"""The client with a real registry: both of its interfaces, and its answer for a missing schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events.avro import Record, parse_schema
from lakesplice.storage.schema_registry import RegistryAccess, SchemaRegistry
from tests.support.apicurio import Apicurio
from tests.support.avro import record

INNER = record("Inner", {"i": "long"})
OUTER = record("Outer", {"inner": "test.shop.items.Inner"})
REFERENCES = [{"name": "test.shop.items.Inner", "subject": "inner", "version": 1}]


@pytest.fixture(scope="module")
def numbers(schema_registry: Apicurio) -> dict[str, int]:
    """The numbers of a schema that refers to another, by what they are numbers of."""
    schema_registry.register("inner", json.dumps(INNER))
    more: dict[str, Any] = {"references": REFERENCES}
    number = schema_registry.register("outer", json.dumps(OUTER), **more)
    return {"schema-id": number, **schema_registry.numbers("outer")}


@pytest.mark.parametrize("kind", ["schema-id", "content-id", "global-id"])
def test_a_schema_comes_with_what_it_refers_to(
    kind: str, schema_registry: Apicurio, numbers: dict[str, int]
) -> None:
    url = schema_registry.compatible if kind == "schema-id" else schema_registry.own
    client = SchemaRegistry(RegistryAccess((url,), kind, retries=0))
    number = numbers[kind]
    found = client.schemas([number, 1_000_000])
    assert found.keys() == {number}
    node = parse_schema(found[number].text, found[number].references)
    assert isinstance(node, Record)
    assert node.fields[0].node == parse_schema(json.dumps(INNER))


def test_a_wrong_address_of_a_real_registry_lacks_no_schema(schema_registry: Apicurio) -> None:
    for url in (schema_registry.own, schema_registry.compatible.removesuffix("/v7")):
        with pytest.raises(SourceUnavailable):
            SchemaRegistry(RegistryAccess((url,), retries=0)).schemas([1])
