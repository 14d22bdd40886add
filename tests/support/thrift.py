"""Reads any Thrift compact structure as plain values, {field id: value}, to inspect Parquet
files.
"""

from __future__ import annotations

import struct
from typing import Any


class Compact:
    """Reads one structure of `data`, from `at` on; `end` is the place behind what was read."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._at = data, at

    @property
    def end(self) -> int:
        return self._at

    def structure(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return self._byte() == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return struct.unpack("<d", self._take(8))[0]
        if kind == 8:
            return self._take(self._varint())
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(size)]
        assert kind == 12, kind
        return self.structure()

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
