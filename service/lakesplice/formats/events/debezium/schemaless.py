"""The shape of an event without a schema: names from the event itself, types from declarations or
DDL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from lakesplice.formats.events.json_reading.member_types import Form, arrow_type, shown_form
from lakesplice.formats.events.json_reading.payload_shape import EventShape, image_type
from lakesplice.formats.events.values.column_types import (
    EVERYWHERE,
    PositionRange,
    TypeHistory,
    TypeVersion,
)
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.formats.events.values.encoding import (
    GEOMETRY_MEMBERS,
    POINT_MEMBERS,
    Cell,
    Encoding,
)
from lakesplice.model.position import Position

_IMAGE: Form = "image"
# If a member that decoding reads has another type, the event becomes a dead letter.
_READ: dict[str, Form] = {
    **dict.fromkeys(("op", "db", "table", "gtid", "file"), "string"),
    **dict.fromkeys(("ts_ms", "ts_us", "pos", "row"), "long"),
}
# Other members have the type that their value shows. These types are used if a value is null, since
# a null doesn't show the type of later values.
_WHERE_NULL: dict[str, Form] = {
    **dict.fromkeys(("version", "connector", "name", "snapshot", "sequence", "query"), "string"),
    **dict.fromkeys(("ts_ns", "server_id", "thread"), "long"),
    "transaction": (
        "struct",
        (("id", "string"), ("total_order", "long"), ("data_collection_order", "long")),
    ),
}


@dataclass(frozen=True, slots=True)
class UndeclaredColumns:
    """Columns whose types are not known; `why` is what the source's DDL says about them."""

    names: tuple[str, ...]
    why: str = ""


class TableTypes:
    """The types of a table's columns at one position: from the source's DDL, otherwise as
    declared.
    """

    def __init__(
        self, declared: Mapping[str, DeclaredType], version: TypeVersion | None = None
    ) -> None:
        self.columns = {**declared, **(version.columns if version else {})}
        self.version = version
        self._cells: dict[str, Cell] = {}

    def cell(self, name: str) -> Cell:
        """Return the column `name`, which must have a type; made once, since every record that is
        read strictly asks for all columns.
        """
        cell = self._cells.get(name)
        if cell is None:
            cell = self._cells[name] = self.columns[name].cell(name)
        return cell

    def undeclared(self, names: Iterable[str]) -> UndeclaredColumns | None:
        """Return which of some columns have no type."""
        missing = tuple(name for name in names if name not in self.columns)
        if not missing:
            return None
        if self.version is None:
            return UndeclaredColumns(missing)
        untyped = self.version.untyped
        reasons = [f"{name}: {untyped[name]}" for name in missing if name in untyped]
        return UndeclaredColumns(missing, "; ".join(filter(None, (self.version.gap, *reasons))))


class TableShapes:
    """The shapes of one table's events; `latest` are the columns of the last event, if any."""

    def __init__(
        self, declared: Mapping[str, DeclaredType], history: TypeHistory | None = None
    ) -> None:
        self._declared = declared
        self._history = history
        self._here = TableTypes(declared)
        self._met: dict[tuple[object, ...], EventShape] = {}
        self.latest: tuple[str, ...] | None = None

    def go_to(self, place: Position | None) -> PositionRange:
        """Use the types of changes at a position; return the range of positions with the same
        types.
        """
        if self._history is None:
            return EVERYWHERE
        version, span = self._history.at(place)
        if version is not self._here.version:
            self._here = TableTypes(self._declared, version)
            self.latest = None
        return span

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that an event without a row image is assumed to have, if they can be
        known.
        """
        return self.latest or tuple(self._here.columns) or None

    def of_event(
        self, payload: Mapping[str, object], names: tuple[str, ...]
    ) -> EventShape | UndeclaredColumns:
        """Return the shape of an event whose row images have the columns `names`."""
        if missing := self._here.undeclared(names):
            return missing
        members = tuple(
            (name, _IMAGE if name in ("before", "after") else _member_form(name, value))
            for name, value in payload.items()
        )
        images = [payload.get(name) for name in ("after", "before")]
        cells = tuple(as_sent(self._here.cell(name), images) for name in names)
        shape = self._met.get((cells, members))
        if shape is None:
            shape = self._met[cells, members] = _shape(cells, members)
        return shape


def as_sent(cell: Cell, images: Iterable[object]) -> Cell:
    """Return the column as it is in row images: a POINT has two members more than a GEOMETRY."""
    if cell.encoding is not Encoding.GEOMETRY:
        return cell
    values = (image.get(cell.name) for image in images if isinstance(image, Mapping))
    is_point = any(isinstance(value, Mapping) and "x" in value for value in values)
    return replace(cell, members=POINT_MEMBERS if is_point else GEOMETRY_MEMBERS)


@lru_cache(maxsize=256)
def _shape(cells: tuple[Cell, ...], members: tuple[tuple[str, Form], ...]) -> EventShape:
    images = image_type(cells)
    return EventShape(
        cells,
        pa.struct([(name, images if of == _IMAGE else arrow_type(of)) for name, of in members]),
    )


def _member_form(name: str, value: object) -> Form:
    if name == "source" and isinstance(value, Mapping):
        return ("struct", tuple((n, _member_form(n, member)) for n, member in value.items()))
    if name in _READ:
        return _READ[name]
    return _WHERE_NULL.get(name, "null") if value is None else shown_form(value)
