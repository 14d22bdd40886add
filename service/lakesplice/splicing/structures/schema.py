"""Finds the leaves of a file's schema in its flat list of elements."""

from __future__ import annotations

from dataclasses import dataclass

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.enums import PhysicalType, Repetition
from lakesplice.splicing.thrift.compact import Struct
from lakesplice.splicing.thrift.fields import Fields

_DEPTH_MAX = 100
_NAME, _CHILDREN = 4, 5  # fields of SchemaElement
_NOWHERE = FilePart("", "schema")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column as chunks store it: the `column`-th leaf of the schema, depth first.

    `element` is its SchemaElement, with the logical type and all fields that aren't typed here.
    """

    column: int
    path: tuple[str, ...]
    physical: PhysicalType
    type_length: int | None
    repetition: Repetition
    max_definition: int
    max_repetition: int
    element: Struct

    @property
    def name(self) -> str:
        """The path, joined with dots."""
        return ".".join(self.path)

    @property
    def flat(self) -> bool:
        """Whether it is a top-level column with one value, or null, in each row."""
        return len(self.path) == 1 and self.max_repetition == 0

    @property
    def nullable(self) -> bool:
        """Whether pages hold definition levels."""
        return self.max_definition > 0


def columns_of(schema: tuple[Struct, ...]) -> tuple[str, ...]:
    """Return the names of the columns in which `leaves_of` found its leaves, in their order."""
    names, deep = [], 0
    for element in schema[1:]:
        children = element.get(_CHILDREN)
        if not deep:
            names.append(Fields(element, _NOWHERE).text(_NAME, "name"))
        deep += (children if isinstance(children, int) else 0) - bool(deep)
    return tuple(names)


@dataclass(slots=True)
class _Group:
    """A group whose children are being read."""

    path: tuple[str, ...]
    left: int
    definition: int
    repetition: int


def leaves_of(schema: tuple[Struct, ...], file_part: FilePart) -> tuple[Leaf, ...]:
    """Return the leaves in the order of the chunks; raises `CorruptFileError`."""
    if not schema:
        raise file_part.corrupt("the schema is empty")
    root = Fields(schema[0], file_part).i32_or_none(5, "num_children of the root", 0)
    open_groups = [_Group((), root or 0, 0, 0)]
    leaves: list[Leaf] = []
    for at, element in enumerate(schema[1:], 1):
        while open_groups and not open_groups[-1].left:
            open_groups.pop()
        if not open_groups:
            raise file_part.corrupt("the schema has elements in no group", element=at)
        open_groups[-1].left -= 1
        found = _node(
            element, open_groups[-1], len(leaves), file_part.within(f"schema element {at}")
        )
        if isinstance(found, Leaf):
            leaves.append(found)
        else:
            open_groups.append(found)
        if len(open_groups) > _DEPTH_MAX:
            raise file_part.corrupt("the schema nests too deep", element=at)
    if any(group.left for group in open_groups):
        raise file_part.corrupt("the schema ends before its groups do")
    return tuple(leaves)


def _node(element: Struct, parent: _Group, column: int, file_part: FilePart) -> Leaf | _Group:
    fields = Fields(element, file_part)
    path = (*parent.path, fields.text(4, "name"))
    physical, children = fields.i32_or_none(1, "type"), fields.i32_or_none(5, "num_children", 0)
    repetition = fields.i32_or_none(3, "repetition_type")
    if repetition is None or not 0 <= repetition <= Repetition.REPEATED:
        raise file_part.corrupt("no such repetition", repetition_type=repetition)
    definition = parent.definition + (repetition != Repetition.REQUIRED)
    repeated = parent.repetition + (repetition == Repetition.REPEATED)
    if physical is None:
        return _Group(path, children or 0, definition, repeated)
    if children:
        raise file_part.corrupt("an element has both a type and children", name=path[-1])
    if not 0 <= physical <= PhysicalType.FIXED_LEN_BYTE_ARRAY:
        raise file_part.corrupt("no such physical type", type=physical)
    length = fields.i32_or_none(2, "type_length", 0)
    if physical == PhysicalType.FIXED_LEN_BYTE_ARRAY and not length:
        raise file_part.corrupt("a value of fixed length has no length", name=path[-1])
    return Leaf(
        column=column,
        path=path,
        physical=PhysicalType(physical),
        type_length=length,
        repetition=Repetition(repetition),
        max_definition=definition,
        max_repetition=repeated,
        element=element,
    )
