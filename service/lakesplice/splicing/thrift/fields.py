"""Typed access to a Thrift structure's fields, and functions that make new fields.

A field of another type counts as missing, as it does for every reader that Thrift generates. If a
required field is missing or out of range, a `CorruptFileError` names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.thrift.compact import Field, List, Struct, WireType

T = TypeVar("T")


class Fields:
    """A structure's fields; the argument `least` is the smallest valid value."""

    __slots__ = ("_file_part", "_struct")

    def __init__(self, struct: Struct, file_part: FilePart) -> None:
        self._struct, self._file_part = struct, file_part

    def i16_or_none(self, field_id: int) -> int | None:
        """Return an i16."""
        value: int | None = self._value(field_id, WireType.I16)
        return value

    def i32(self, field_id: int, name: str, least: int | None = None) -> int:
        """Return an i32 that must be there."""
        return self._needed(self._integer(field_id, WireType.I32, name, least), name)

    def i32_or_none(self, field_id: int, name: str, least: int | None = None) -> int | None:
        """Return an i32."""
        return self._integer(field_id, WireType.I32, name, least)

    def i64(self, field_id: int, name: str, least: int | None = None) -> int:
        """Return an i64 that must be there."""
        return self._needed(self._integer(field_id, WireType.I64, name, least), name)

    def i64_or_none(self, field_id: int, name: str, least: int | None = None) -> int | None:
        """Return an i64."""
        return self._integer(field_id, WireType.I64, name, least)

    def boolean_or_none(self, field_id: int) -> bool | None:
        """Return a boolean."""
        value: bool | None = self._value(field_id, WireType.TRUE)
        return value

    def binary(self, field_id: int, name: str) -> bytes:
        """Return bytes that must be there."""
        return self._needed(self.binary_or_none(field_id), name)

    def binary_or_none(self, field_id: int) -> bytes | None:
        """Return bytes."""
        value: bytes | None = self._value(field_id, WireType.BINARY)
        return value

    def text(self, field_id: int, name: str) -> str:
        """Return UTF-8 text that must be there."""
        return self._text(self.binary(field_id, name), name)

    def struct(self, field_id: int, name: str) -> Struct:
        """Return a structure that must be there."""
        return self._needed(self.struct_or_none(field_id), name)

    def struct_or_none(self, field_id: int) -> Struct | None:
        """Return a structure."""
        value: Struct | None = self._value(field_id, WireType.STRUCT)
        return value

    def structs(self, field_id: int, name: str) -> tuple[Struct, ...]:
        """Return a list of structures that must be there."""
        return self._needed(self.structs_or_none(field_id, name), name)

    def structs_or_none(self, field_id: int, name: str) -> tuple[Struct, ...] | None:
        """Return a list of structures."""
        return self._list(field_id, WireType.STRUCT, name)

    def i32s(self, field_id: int, name: str) -> tuple[int, ...]:
        """Return a list of i32 that must be there."""
        return self._needed(self._list(field_id, WireType.I32, name), name)

    def i64s_or_none(self, field_id: int, name: str) -> tuple[int, ...] | None:
        """Return a list of i64."""
        return self._list(field_id, WireType.I64, name)

    def booleans(self, field_id: int, name: str) -> tuple[bool, ...]:
        """Return a list of booleans that must be there."""
        return self._needed(self._list(field_id, WireType.TRUE, name), name)

    def binaries(self, field_id: int, name: str) -> tuple[bytes, ...]:
        """Return a list of bytes that must be there."""
        return self._needed(self._list(field_id, WireType.BINARY, name), name)

    def texts(self, field_id: int, name: str) -> tuple[str, ...]:
        """Return a list of UTF-8 texts that must be there."""
        return tuple(self._text(value, name) for value in self.binaries(field_id, name))

    def _integer(self, field_id: int, wire: WireType, name: str, least: int | None) -> int | None:
        value: int | None = self._value(field_id, wire)
        if value is not None and least is not None and value < least:
            raise self._file_part.corrupt(f"{name} is too small", value=value)
        return value

    def _list(self, field_id: int, wire: WireType, name: str) -> tuple[Any, ...] | None:
        value: List | None = self._value(field_id, WireType.LIST)
        if value is None or not value.values:
            return None if value is None else ()
        if value.wire is not wire:
            raise self._file_part.corrupt(f"{name} is a list of another type", type=value.wire.name)
        return value.values

    def _value(self, field_id: int, wire: WireType) -> Any:
        found = self._struct.fields.get(field_id)
        return found[1] if found is not None and found[0] is wire else None

    def _needed(self, value: T | None, name: str) -> T:
        if value is None:
            raise self._file_part.corrupt(f"{name} is missing or has another type")
        return value

    def _text(self, value: bytes, name: str) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise self._file_part.corrupt(f"{name} is not UTF-8", value=value[:64]) from None


def i16(value: int | None) -> Field | None:
    """Return an i16 as a field."""
    return None if value is None else (WireType.I16, value)


def i32(value: int | None) -> Field | None:
    """Return an i32 as a field."""
    return None if value is None else (WireType.I32, value)


def i64(value: int | None) -> Field | None:
    """Return an i64 as a field."""
    return None if value is None else (WireType.I64, value)


def boolean(value: bool | None) -> Field | None:
    """Return a boolean as a field."""
    return None if value is None else (WireType.TRUE, value)


def binary(value: bytes | None) -> Field | None:
    """Return bytes as a field."""
    return None if value is None else (WireType.BINARY, value)


def struct(value: Struct | None) -> Field | None:
    """Return a structure as a field."""
    return None if value is None else (WireType.STRUCT, value)


def structs(values: Iterable[Struct] | None) -> Field | None:
    """Return a list of structures as a field."""
    return None if values is None else (WireType.LIST, List(WireType.STRUCT, tuple(values)))


def i32s(values: Iterable[int] | None) -> Field | None:
    """Return a list of i32 as a field."""
    return None if values is None else (WireType.LIST, List(WireType.I32, tuple(values)))


def i64s(values: Iterable[int] | None) -> Field | None:
    """Return a list of i64 as a field."""
    return None if values is None else (WireType.LIST, List(WireType.I64, tuple(values)))


def binaries(values: Iterable[bytes] | None) -> Field | None:
    """Return a list of bytes as a field."""
    return None if values is None else (WireType.LIST, List(WireType.BINARY, tuple(values)))


def booleans(values: Iterable[bool] | None) -> Field | None:
    """Return a list of booleans as a field."""
    return None if values is None else (WireType.LIST, List(WireType.TRUE, tuple(values)))
