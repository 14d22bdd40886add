"""Avro schemas: what their JSON says, with every name looked up.

Source: the Avro specification 1.12, "Schema Declaration". Attributes that it doesn't know, such as
those of Kafka Connect, are kept. The types inside arrays and maps aren't kept, since such columns
aren't read; a schema that holds itself is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from lakesplice.errors import UnsupportedError

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_LEVELS_MAX = 20


@dataclass(frozen=True)
class Scalar:
    """A primitive type, `fixed` of `size` bytes, `enum` of `symbols`, `array` or `map`."""

    kind: str
    attributes: Mapping[str, object] = field(default_factory=dict)
    size: int = 0
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True)
class Union:
    """One of several types."""

    branches: tuple[Node, ...]


@dataclass(frozen=True)
class RecordField:
    """A field of a record."""

    name: str
    node: Node


@dataclass(frozen=True)
class Record:
    """A record of fields in order."""

    name: str
    fields: tuple[RecordField, ...]
    attributes: Mapping[str, object] = field(default_factory=dict)


Node = Scalar | Union | Record


def parse_schema(text: str, references: Sequence[str] = ()) -> Node:
    """Parse a schema; `references` are schemas whose names it may use, each after those it uses
    itself.

    Raises `UnsupportedError` for legal schemas that aren't supported, and `ValueError` or another
    error of JSON and of look-ups for a text that isn't a schema.
    """
    names: dict[str, object] = {}
    for other in references:
        _Parser(names).node(json.loads(other), "", 0)
    return _Parser(names).node(json.loads(text), "", 0)


@dataclass
class _Parser:
    """`names` are the types defined so far; a type that is being defined is None."""

    names: dict[str, object]

    def node(self, schema: object, space: str, level: int) -> Node:
        if level > _LEVELS_MAX:
            raise UnsupportedError("an Avro schema is nested too deeply", levels=_LEVELS_MAX)
        if isinstance(schema, str):
            return Scalar(schema) if schema in PRIMITIVES else self._named_type(schema, space)
        if isinstance(schema, list):
            branches = tuple(self.node(branch, space, level + 1) for branch in schema)
            if not branches or any(isinstance(branch, Union) for branch in branches):
                raise ValueError("a union has one type or more, and no union among them")
            return Union(branches)
        if not isinstance(schema, Mapping):
            raise TypeError(f"{schema!r} is no Avro schema")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.node(kind, space, level + 1)
        if kind in PRIMITIVES:
            return Scalar(kind, schema)
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(kind, schema, space, level)
        if kind in ("array", "map"):
            self.node(schema["items" if kind == "array" else "values"], space, level + 1)
            return Scalar(kind, schema)
        return self._named_type(kind, space)

    def _define(
        self, kind: str, schema: Mapping[str, object], space: str, level: int
    ) -> Scalar | Record:
        full = _full(str(schema["name"]), str(schema.get("namespace", space)))
        inner = full.rpartition(".")[0]
        if full in self.names:
            raise ValueError(f"{full} is defined twice")
        self.names[full] = None
        if kind == "fixed":
            size = schema["size"]
            if not isinstance(size, int) or size < 0:
                raise ValueError(f"{full} has no size")
            node: Scalar | Record = Scalar(kind, schema, size=size)
        elif kind == "enum":
            symbols = tuple(map(str, cast("list[object]", schema["symbols"])))
            node = Scalar(kind, schema, symbols=symbols)
        else:
            listed = cast("list[Mapping[str, object]]", schema["fields"])
            fields = tuple(
                RecordField(str(member["name"]), self.node(member["type"], inner, level + 1))
                for member in listed
            )
            if len({member.name for member in fields}) != len(fields):
                raise ValueError(f"{full} has a field twice")
            node = Record(full, fields, schema)
        self.names[full] = node
        return node

    def _named_type(self, name: str, space: str) -> Node:
        full = _full(name, space)
        found = self.names[full] if full in self.names else self.names[name]
        if found is None:
            raise UnsupportedError("an Avro schema contains itself", type=full)
        return cast("Node", found)


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
