"""Records that no connector sends, each made from a real one and named by its fault.

If possible, a record contains `HARM` at a position above the real record's: if it were applied,
even in part, the test would see it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.table.files.dead_letters import DeadLetter
from lakesplice.testing.shop.events import Event

HARM = "HARM"
GIANT_BYTES = 8_000_000
_DEEP = 100_000

Payload = dict[str, Any]
Make = Callable[[bytes, bytes], tuple[bytes | None, bytes | None]]


class Malformed(NamedTuple):
    """A kind of damage: the code its dead letter must carry, and how to make one from a record of
    a table with the columns `id`, `text`, `amount`, `price` and `at`.

    `first_of_its_kind` is the code where no schema or record before it says what it should be.
    """

    reason: str
    make: Make
    first_of_its_kind: str = ""

    @property
    def reasons(self) -> set[str]:
        """The codes that tell what is wrong."""
        return {self.reason, self.first_of_its_kind} - {""}


def letter_of(event: Event, partition: int, offset: Offset) -> DeadLetter:
    """What is stored of an event that wasn't JSON when it was read."""
    record = event.topic, partition, offset, EpochMs(event.timestamp_ms), event.key, event.value
    return DeadLetter(*record, "not-json", "", "[]", NO_MOMENT, NO_MOMENT, 0)


def _edit(change: Callable[[Payload], object]) -> Make:
    """Harm the row, then change the envelope; the record stays JSON."""

    def make(key: bytes, value: bytes) -> tuple[bytes, bytes]:
        return key, _harmed(value, change)

    return make


def _patch(old: bytes, new: bytes) -> Make:
    """Harm the row, then replace bytes of the text; what comes is as JSON libraries won't write."""

    def make(key: bytes, value: bytes) -> tuple[bytes, bytes]:
        harmed = _harmed(value)
        assert old in harmed
        return key, harmed.replace(old, new)

    return make


def _whole(bytes_of: Callable[[bytes], bytes]) -> Make:
    def make(key: bytes, value: bytes) -> tuple[bytes, bytes]:
        return key, bytes_of(_harmed(value))

    return make


def _keyed(key_of: Callable[[bytes], bytes | None]) -> Make:
    def make(key: bytes, value: bytes) -> tuple[bytes | None, bytes]:
        return key_of(key), _harmed(value)

    return make


def _harmed(value: bytes, change: Callable[[Payload], object] = lambda _: None) -> bytes:
    record = json.loads(value)
    payload: Payload = record.get("payload", record)
    payload["op"] = "u"
    payload["after"]["text"] = HARM
    payload["source"]["pos"] += 1
    change(payload)
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def _after(**values: object) -> Make:
    return _edit(lambda payload: payload["after"].update(values))


def _source(**values: object) -> Make:
    return _edit(lambda payload: payload["source"].update(values))


def _other_key(key: bytes) -> bytes:
    record = json.loads(key)
    record.get("payload", record)["id"] += 1_000_000
    return json.dumps(record, separators=(",", ":")).encode()


MALFORMED: Mapping[str, Malformed] = {
    "not JSON": Malformed("not-json", _whole(lambda _: b"this is not JSON")),
    "empty": Malformed("empty", _whole(lambda _: b"")),
    "only spaces": Malformed("not-json", _whole(lambda _: b"   ")),
    "cut off at its end": Malformed("not-json", _whole(lambda v: v[:-20])),
    "cut off at its start": Malformed("not-json", _whole(lambda v: v[20:])),
    "cut off in the middle": Malformed("not-json", _whole(lambda v: v[: len(v) // 2])),
    "a line break in a string": Malformed("not-json", _patch(b"HARM", b"HA\nRM")),
    "two records on two lines": Malformed("not-json", _whole(lambda v: v + b"\n" + v)),
    "a line that ends the record before it": Malformed("not-json", _whole(lambda v: b"}\n" + v)),
    "a record left open at a line break": Malformed("not-json", _whole(lambda v: v[:-1] + b"\n")),
    "null bytes": Malformed("not-json", _whole(lambda _: bytes(16))),
    "a null byte in a string": Malformed("not-json", _patch(b"HARM", b"HA\x00RM")),
    "not UTF-8": Malformed("not-json", _patch(b"HARM", b"HA\xff\xfeRM")),
    "UTF-16": Malformed("not-json", _whole(lambda v: v.decode().encode("utf-16"))),
    "a byte order mark": Malformed("not-json", _whole(lambda v: b"\xef\xbb\xbf" + v)),
    "deep lists": Malformed("not-json", _whole(lambda _: b"[" * _DEEP)),
    "deep lists in a field": Malformed("not-json", _patch(b'"HARM"', b"[" * _DEEP + b"]" * _DEEP)),
    "giant and no JSON": Malformed("not-json", _whole(lambda _: b"x" * GIANT_BYTES)),
    "giant and of the wrong type": Malformed("wrong-type", _after(amount="x" * GIANT_BYTES)),
    "a string for a number": Malformed("wrong-type", _after(amount="12")),
    "a number for a string": Malformed("wrong-type", _after(text=12)),
    "a fraction for a whole number": Malformed("wrong-type", _after(amount=1.5)),
    "a boolean for a number": Malformed("wrong-type", _after(amount=True)),
    "an object for a string": Malformed("wrong-type", _after(text={"a": HARM})),
    "a list for a row": Malformed("wrong-type", _edit(lambda p: p.update(after=[HARM]))),
    "a number that is none": Malformed("not-json", _patch(b'"HARM","amount":', b'"","amount":NaN')),
    "an integer too large": Malformed("out-of-range", _after(amount=2**40)),
    "an integer of 400 digits": Malformed("out-of-range", _after(amount=10**400)),
    "a decimal too large": Malformed("out-of-range", _after(price="AQAAAAAAAAAA")),
    "a decimal that isn't base64": Malformed("wrong-type", _after(price="***")),
    "a moment too far": Malformed("out-of-range", _after(at=2**62)),
    "a key that is null": Malformed("missing-key", _after(id=None)),
    "a field twice": Malformed("unexpected-field", _patch(b'"op":"u"', b'"op":"u","op":"d"')),
    "a column twice": Malformed(
        "unexpected-field", _patch(b'"text":"HARM"', b'"text":"a","text":"HARM"')
    ),
    "unknown operation": Malformed("unknown-op", _edit(lambda p: p.update(op="x"))),
    "no operation": Malformed(
        "missing-field", _edit(lambda p: p.pop("op")), first_of_its_kind="not-an-envelope"
    ),
    "operation is a number": Malformed(
        "wrong-type", _edit(lambda p: p.update(op=1)), first_of_its_kind="unknown-op"
    ),
    "no source": Malformed(
        "missing-field", _edit(lambda p: p.pop("source")), first_of_its_kind="not-an-envelope"
    ),
    "no position": Malformed("missing-position", _source(pos=None)),
    "a position too large": Malformed("out-of-range", _source(pos=2**70)),
    "a binlog file without a number": Malformed("missing-position", _source(file="binlog")),
    "no row after": Malformed("missing-image", _edit(lambda p: p.update(after=None))),
    "of another table": Malformed("wrong-table", _source(table="elsewhere")),
    "of another database": Malformed("wrong-table", _source(db="elsewhere")),
    "a schema change": Malformed(
        "wrong-table", _whole(lambda _: b'{"source":{},"ddl":"drop table ledger"}')
    ),
    "a number alone": Malformed("not-an-envelope", _whole(lambda _: b"42")),
    "a string alone": Malformed("not-an-envelope", _whole(lambda _: b'"HARM"')),
    "a list alone": Malformed("not-an-envelope", _whole(lambda _: b"[]")),
    "an empty schema": Malformed(
        "not-an-envelope", _whole(lambda v: b'{"schema":{},"payload":' + v + b"}")
    ),
    "another row's key": Malformed("key-mismatch", _keyed(_other_key)),
    "a key that is no JSON": Malformed("missing-key", _keyed(lambda _: b"\x00\xff")),
    "an empty key": Malformed("missing-key", _keyed(lambda _: b"")),
}
