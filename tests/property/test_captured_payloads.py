"""Records of real connectors, damaged: a value, a dead letter or a parked table, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.events import DecodeContext, Decoded, declare
from lakesplice.model.names import TableName
from tests.conformance.test_maxwell_captures import MAXWELL
from tests.support.avro import captured_schemas
from tests.support.debezium import Json, Record, captured, decode_all, images
from tests.support.drawing import examples
from tests.support.workload import DECLARED


@dataclass(frozen=True)
class Capture:
    """One table's records of a capture, how they are read, and what is read."""

    records: list[Record]
    context: DecodeContext

    @cached_property
    def sound(self) -> Decoded:
        return decode_all(self.records, self.context)

    @cached_property
    def images(self) -> dict[int, tuple[Json | None, Json | None]]:
        return images(self.sound)


CAPTURES = ("dbsch", "dbplain", "dbflat", "dbavro", "maxwell")


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request: pytest.FixtureRequest, shared: Callable[..., Path]) -> Capture:
    name = request.param
    if name == "maxwell":
        (records,) = captured(shared("examples", "captures", "maxwell.jsonl")).values()
        own = [r for r in records if json.loads(r[1] or b"{}").get("table") == "t"]
        context = DecodeContext(TableName("mx", "t"), declare(MAXWELL["t"]))
        return Capture(own, context)
    parts = captured(shared("examples", "captures", f"debezium-mariadb-{name}.jsonl"))
    records = [
        record
        for (topic, _), found in sorted(parts.items())
        if topic == f"{name}.shop.customers"
        for record in found
    ]
    context = DecodeContext(TableName("shop", "customers"))
    if name == "dbavro":
        kept = shared("examples", "captures", "debezium-mariadb-dbavro.schemas.json")
        context = replace(context, schemas=captured_schemas(kept).known)
    elif name != "dbsch":
        context = replace(context, declared=declare(DECLARED["customers"]))
    return Capture(records, context)


@st.composite
def damage(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Bytes flipped, cut out, doubled or put in, at one to three places."""
    places = draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3))
    kind = draw(st.sampled_from(("flip", "cut", "double", "insert", "end")))
    octets = draw(st.binary(min_size=1, max_size=6) | st.sampled_from([b"null", b"}", b'"', b"\0"]))

    def damaged(value: bytes) -> bytes:
        for place in places:
            at = int(place * len(value))
            head, tail = value[:at], value[at:]
            value = {
                "flip": head + bytes([(tail[0] if tail else 0) ^ octets[0]]) + tail[1:],
                "cut": head + tail[len(octets) :],
                "double": head + tail[: len(octets)] + tail,
                "insert": head + octets + tail,
                "end": head,
            }[kind]
        return value

    return damaged


@settings(max_examples=examples(40))
@given(data=st.data())
def test_damage_in_a_captured_record_is_settled_and_costs_no_neighbour(
    capture: Capture, data: st.DataObject
) -> None:
    expected = capture.images
    numbers = st.integers(0, len(capture.records) - 1)
    harmed = data.draw(st.dictionaries(numbers, st.tuples(damage(), damage()), max_size=3))
    keys_too = data.draw(st.booleans())
    records = [
        record
        if number not in harmed
        else (
            harmed[number][0](record[0]) if record[0] and keys_too else record[0],
            record[1] and harmed[number][1](record[1]),
        )
        for number, record in enumerate(capture.records)
    ]
    decoded = decode_all(records, replace(capture.context, format=capture.sound.format))
    end = min((stop.row for stop in decoded.stops), default=len(records))
    found = images(decoded)
    untouched = [row for row in expected if row not in harmed and row < end]
    assert {row: found.get(row) for row in untouched} == {row: expected[row] for row in untouched}
