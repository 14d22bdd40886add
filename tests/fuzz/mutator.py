"""Changes values of a structure, so that fuzzing also reaches the code behind the codec."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import Field, List, Struct, Value, WireType
from lakesplice.splicing.thrift.decoding import Limits, decode_struct
from lakesplice.splicing.thrift.encoding import encode_struct
from tests.fuzz.inputs import as_file

_BITS = {WireType.BYTE: 8, WireType.I16: 16, WireType.I32: 32, WireType.I64: 64}
_LIMITS = Limits(values_max=20_000)
_TRIES = 10


def mutated(data: bytes, chance: Random) -> bytes | None:
    """The encoded structure with one value changed; None if it is none."""
    try:
        found, end = decode_struct(data, file_part=FilePart("", ""), limits=_LIMITS)
    except (CorruptFileError, UnsupportedError):
        return None
    return encode_struct(_struct(found, chance)) + data[end:]


def mutated_file(body: bytes, chance: Random) -> bytes | None:
    """The input of a file with one value of its footer, an index or a page's header changed."""
    start = max(0, len(body) - 2 - int.from_bytes(body[-2:], "little"))
    if chance.random() < 0.5:
        footer = mutated(body[start:-2], chance)
        if footer is None or len(footer) >= 1 << 16:
            return None
        return body[:start] + footer + len(footer).to_bytes(2, "little")
    try:
        file = SourceFile(pa.BufferReader(as_file(body)), "")
        at = chance.choice(_structures(file, chance)) - len(MAGIC)
        _, end = decode_struct(body, at, file_part=FilePart("", ""), limits=_LIMITS)
    except (CorruptFileError, UnsupportedError, IndexError, ValueError):
        return None
    # What follows stays where the footer says that it is.
    for _ in range(_TRIES):
        changed = mutated(body[at:end], chance)
        if changed is not None and len(changed) == end - at:
            return body[:at] + changed + body[end:]
    return None


def _structures(file: SourceFile, chance: Random) -> list[int]:
    """Where the indexes of some chunk start, and its pages."""
    group = chance.randrange(len(file.footer.row_groups))
    column = chance.randrange(len(file.footer.leaves))
    chunk = file.chunk(group, column)
    spans = [span.offset for span in (chunk.offset_index, chunk.column_index) if span is not None]
    return spans + [page.offset for page in file.pages(group, column)]


def _struct(found: Struct, chance: Random) -> Struct:
    fields = dict(found.fields)
    if not fields or chance.random() < 0.05:
        fields[chance.randint(1, 12)] = _new(chance)
        return Struct(fields)
    field_id = chance.choice(list(fields))
    if chance.random() < 0.1:
        del fields[field_id]
    else:
        fields[field_id] = _field(fields[field_id], chance)
    return Struct(fields)


def _field(found: Field, chance: Random) -> Field:
    wire, value = found
    if chance.random() < 0.03:
        return _new(chance)
    return wire, _value(wire, value, chance)


def _value(wire: WireType, value: Value, chance: Random) -> Value:
    if isinstance(value, Struct):
        return _struct(value, chance)
    if isinstance(value, List):
        return _list(value, chance)
    if isinstance(value, bytes) and wire is WireType.BINARY:
        return value[: chance.randint(0, len(value))] + chance.randbytes(chance.randint(0, 3))
    if isinstance(value, bool):
        return not value
    return _integer(wire, value, chance) if isinstance(value, int) else value


def _list(found: List, chance: Random) -> List:
    values = list(found.values)
    if not values:
        return found
    at, how = chance.randrange(len(values)), chance.random()
    if how < 0.15:
        del values[at]
    elif how < 0.3:
        values.insert(at, values[chance.randrange(len(values))])
    else:
        values[at] = _value(found.wire, values[at], chance)
    return List(found.wire, tuple(values))


def _integer(wire: WireType, value: int, chance: Random) -> int:
    top = 1 << _BITS[wire] - 1
    new = chance.choice(
        [0, 1, -1, top - 1, -top, value + 1, value - 1, -value, value * 2, chance.randrange(top)]
    )
    return max(-top, min(top - 1, new))


def _new(chance: Random) -> Field:
    wire = chance.choice(list(_BITS))
    fields: list[Field] = [
        (wire, _integer(wire, 7, chance)),
        (WireType.BINARY, chance.randbytes(3)),
        (WireType.TRUE, True),
        (WireType.STRUCT, Struct()),
        (WireType.LIST, List(wire, (1, 2, 3))),
    ]
    return chance.choice(fields)
