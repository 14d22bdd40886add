"""Vectors by hand from the specification of Thrift's compact protocol."""

from __future__ import annotations

import pytest

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.thrift.compact import EMPTY, List, Map, Struct, WireType
from lakesplice.splicing.thrift.decoding import Limits, decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from tests.support.parquet_parts import PLACE

VECTORS = {
    "nothing": (b"\x00", EMPTY),
    "an i32 of 1 in field 1": (b"\x15\x02\x00", Struct({1: (WireType.I32, 1)})),
    "an i64 of -1 in field 2": (b"\x26\x01\x00", Struct({2: (WireType.I64, -1)})),
    "the lowest i64": (
        b"\x16" + b"\xff" * 9 + b"\x01\x00",
        Struct({1: (WireType.I64, -(1 << 63))}),
    ),
    "an i16 of 300": (b"\x14\xd8\x04\x00", Struct({1: (WireType.I16, 300)})),
    "a byte of -2": (b"\x13\xfe\x00", Struct({1: (WireType.BYTE, -2)})),
    "true and false in fields 1 and 3": (
        b"\x11\x22\x00",
        Struct({1: (WireType.TRUE, True), 3: (WireType.TRUE, False)}),
    ),
    "a field further than 15 behind the last": (
        b"\x15\x00\x05\x28\x04\x00",
        Struct({1: (WireType.I32, 0), 20: (WireType.I32, 2)}),
    ),
    "a field before the last": (
        b"\x35\x00\x05\x02\x04\x00",
        Struct({3: (WireType.I32, 0), 1: (WireType.I32, 2)}),
    ),
    "bytes": (b"\x18\x03abc\x00", Struct({1: (WireType.BINARY, b"abc")})),
    "a double": (b"\x17" + b"12345678" + b"\x00", Struct({1: (WireType.DOUBLE, b"12345678")})),
    "a UUID": (
        b"\x1d" + b"0123456789abcdef" + b"\x00",
        Struct({1: (WireType.UUID, b"0123456789abcdef")}),
    ),
    "a struct in a struct": (
        b"\x1c\x15\x02\x00\x00",
        Struct({1: (WireType.STRUCT, Struct({1: (WireType.I32, 1)}))}),
    ),
    "a list of two i32": (
        b"\x19\x25\x02\x04\x00",
        Struct({1: (WireType.LIST, List(WireType.I32, (1, 2)))}),
    ),
    "a list of twenty flags": (
        b"\x19\xf1\x14" + b"\x01\x02" * 10 + b"\x00",
        Struct({1: (WireType.LIST, List(WireType.TRUE, (True, False) * 10))}),
    ),
    "a list of forty texts of different lengths": (
        b"\x19\xf8\x28" + b"\x01a\x02bc" * 20 + b"\x00",
        Struct({1: (WireType.LIST, List(WireType.BINARY, (b"a", b"bc") * 20))}),
    ),
    "a list of forty texts, one of them long": (
        b"\x19\xf8\x28" + b"\x01a" * 39 + b"\xc8\x01" + b"x" * 200 + b"\x00",
        Struct({1: (WireType.LIST, List(WireType.BINARY, (b"a",) * 39 + (b"x" * 200,)))}),
    ),
    "a list of forty UUIDs": (
        b"\x19\xfd\x28" + b"0123456789abcdef" * 40 + b"\x00",
        Struct({1: (WireType.LIST, List(WireType.UUID, (b"0123456789abcdef",) * 40))}),
    ),
    "a set": (b"\x1a\x18\x01a\x00", Struct({1: (WireType.SET, List(WireType.BINARY, (b"a",)))})),
    "an empty map": (
        b"\x1b\x00\x00",
        Struct({1: (WireType.MAP, Map(WireType.STOP, WireType.STOP, ()))}),
    ),
    "a map": (
        b"\x1b\x01\x85\x01k\x02\x00",
        Struct({1: (WireType.MAP, Map(WireType.BINARY, WireType.I32, ((b"k", 1),)))}),
    ),
}

DAMAGED = {
    "nothing at all": (b"", "ends in the middle"),
    "a missing end": (b"\x15\x02", "ends in the middle"),
    "a missing value": (b"\x15", "ends in the middle"),
    "bytes longer than the rest": (b"\x18\x7fabc\x00", "longer than the bytes"),
    "bytes of an enormous length": (
        b"\x18" + b"\xff" * 9 + b"\x01abc\x00",
        "longer than the bytes",
    ),
    "an enormous list": (b"\x19\xf5\xff\xff\xff\xff\x0f\x02\x00", "longer than the bytes"),
    "an enormous map": (b"\x1b\xff\xff\xff\xff\x0f\x55\x02\x02\x00", "longer than the bytes"),
    "an integer without an end": (b"\x16" + b"\xff" * 20, "more than ten bytes"),
    "an integer of 65 bits": (b"\x16" + b"\xff" * 9 + b"\x02\x00", "64 bits"),
    "an integer of 33 bits": (b"\x15\x80\x80\x80\x80\x10\x00", "32 bits"),
    "a negative one of 33 bits": (b"\x15\x81\x80\x80\x80\x10\x00", "32 bits"),
    "an i32 of 33 bits": (b"\x15" + b"\xff" * 4 + b"\x1f\x00", "32 bits"),
    "a type that doesn't exist": (b"\x1e\x00\x00", "no such type"),
    "a list of a type that doesn't exist": (b"\x19\x1f\x00\x00", "no such type"),
    "a list of nothings": (b"\x19\x10\x00\x00", "no such type"),
    "a field that is there twice": (b"\x15\x02\x05\x02\x02\x00", "twice"),
    "structures without an end": (b"\x1c" * 1000, "too deep"),
    "lists without an end": (b"\x19" + b"\x19" * 1000, "too deep"),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_structure_is_read_and_written_as_the_specification_says(name: str) -> None:
    data, struct = VECTORS[name]
    assert decode_struct(data + b"more", file_part=PLACE) == (struct, len(data))
    assert decode_struct(memoryview(b"xx" + data), 2, file_part=PLACE) == (struct, len(data) + 2)
    assert encode_struct(struct) == data


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_with_file_place_and_reason(name: str) -> None:
    data, reason = DAMAGED[name]
    with pytest.raises(CorruptFileError, match=reason) as raised:
        decode_struct(data, file_part=PLACE)
    assert raised.value.facts["path"] == "some.parquet"
    assert raised.value.facts["place"] == "some part"
    assert "byte" in raised.value.facts


def test_zero_is_false_too_as_older_writers_put_it_into_lists() -> None:
    struct, _ = decode_struct(b"\x19\x32\x00\x01\x02\x00", file_part=PLACE)
    assert struct == Struct({1: (WireType.LIST, List(WireType.TRUE, (False, True, False)))})


def test_more_values_than_the_limit_are_unsupported() -> None:
    data = encode_struct(Struct({1: (WireType.LIST, List(WireType.STRUCT, (EMPTY,) * 100))}))
    assert decode_struct(data, file_part=PLACE, limits=Limits(values_max=101))
    with pytest.raises(UnsupportedError, match="more values"):
        decode_struct(data, file_part=PLACE, limits=Limits(values_max=100))


def test_a_caller_may_read_the_first_fields_itself() -> None:
    assert decode_struct(b"\x15\x02\x00", file_part=PLACE, last_id=1)[0] == Struct(
        {2: (WireType.I32, 1)}
    )


def test_replaced_fields_keep_their_place_and_new_ones_come_in_order() -> None:
    struct = Struct({1: (WireType.I32, 1), 5: (WireType.I32, 5), 9: (WireType.I32, 9)})
    changed = struct.replaced({5: (WireType.I32, 50), 9: None})
    assert list(changed.fields.items()) == [(1, (WireType.I32, 1)), (5, (WireType.I32, 50))]
    assert list(struct.replaced({3: (WireType.I32, 3)}).fields) == [1, 3, 5, 9]
    assert struct.get(9) == 9
    assert struct.get(2) is None
