"""What a stencil reads is what the JSON reader reads, every text that is written as is usual is
read, and a group of texts is read with stencils as it is without.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.record_group import read_group
from lakesplice.formats.events.json_reading.stencil import stencil_of
from lakesplice.formats.events.json_reading.stencil_reading import (
    Fitting,
    SeparatedTexts,
    read_fitting,
)
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import Template, read_payload
from lakesplice.formats.events.json_reading.texts import (
    Refused,
    parse_options,
    read_texts,
    unsafe_texts,
)
from lakesplice.model.arrays import Integers
from tests.support.drawing import examples
from tests.support.written_events import ODD_VALUES, WrittenEvents

_ROW = pa.struct([("n", pa.int64()), ("a,", pa.string()), ("é", pa.float64()), ("b", pa.bool_())])
_SHAPE = EventShape(
    (),
    pa.struct(
        [("before", _ROW), ("after", _ROW), ("none", pa.null()), ("m", _ROW), ("op", pa.string())]
    ),
)
# Without what JSON writes with a backslash.
_plain_texts = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cc"]), max_size=4
)
_USUAL: dict[str, st.SearchStrategy[Any]] = {
    "n": st.none() | st.integers(-(10**18) + 1, 10**18 - 1) | st.integers(0, 9),
    "a,": st.none() | _plain_texts,
    "é": st.none() | st.floats(-1e15, 1e15).map(lambda value: round(value, 3)),
    "b": st.none() | st.booleans(),
}


def _ordered(members: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw objects whose members have this order, as a producer's have one."""
    drawn = st.fixed_dictionaries(members)
    return drawn.map(lambda found: {name: found[name] for name in members})


_rows = _ordered(_USUAL)
_events = _ordered(
    {
        "before": _rows | st.none(),
        "after": _rows,
        "none": st.none(),
        "m": st.none(),
        "op": st.sampled_from(["c", "u", ""]),
    }
)
# What may stand where a value is expected, or a name, and looks like one.
_PIECES = st.sampled_from(
    ["-0", "05", "-05", "-", "1.", ".5", "+1", "1e5", "1E400", "0x1", "NaN", "Infinity", "1 ",
     "9223372036854775807", "9223372036854775808", "12345678901234567890.5", "null", "nulL", "nul",
     "n", "true", "tru", "false", "t", "f", '"', '""', '"\\""', '"\\u00e9"', '"\\ud800"', '"x"y"',
     '","', '"a,","b":true', '{"n":1}', "[]", "", " ", "1,2", '"b":null', '"null"', '"n":1,"n":2']
)  # fmt: skip


def _text(event: dict[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """Draw the text of an event in which a value, or any other part, is replaced."""
    event = draw(_events)
    text = _text(event)
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(_USUAL)))
        written = f"{json.dumps(name, ensure_ascii=False)}:"
        value = json.dumps(event["after"][name], ensure_ascii=False)
        return text.replace(f"{written}{value}", written + draw(_PIECES), 1)
    start = draw(st.integers(0, len(text)))
    return text[:start] + draw(_PIECES) + text[start + draw(st.integers(0, 3)) :]


def _read(texts: list[str], form: str, closing: bytes) -> Fitting | None:
    stencil = stencil_of(form.encode(), _SHAPE.payload, closing)
    if stencil is None:
        return None
    # A slice, whose texts don't begin where the buffer does.
    array = pa.array(["{}", *texts]).cast(pa.binary())[1:]
    return read_fitting(SeparatedTexts(array), ~unsafe_texts(array), stencil)


@pytest.mark.parametrize("closing", [b"}", b""], ids=["alone", "wrapped"])
@given(data=st.data())
def test_a_stencil_reads_what_the_json_reader_reads(data: st.DataObject, closing: bytes) -> None:
    tail = "" if closing else "}"
    texts = data.draw(st.lists(_events.map(_text) | _damaged(), min_size=1, max_size=6))
    texts = [text + tail for text in texts]
    fitting = _read(texts, data.draw(st.sampled_from(texts)), closing)
    if fitting is None:
        return
    for at, row in zip(fitting.at.tolist(), fitting.rows, strict=True):
        text = texts[at].encode()
        strictly = read_payload(text, closing)
        assert not isinstance(strictly, Flaw)
        assert _SHAPE.check(strictly, "payload") is None
        alone = read_texts(pa.array([text]), parse_options(_SHAPE.payload), closing, threads=False)
        assert not isinstance(alone, Refused)
        assert repr(row.as_py()) == repr(alone[0].as_py())


@given(st.lists(_events, min_size=1, max_size=6))
@example([{"before": None, "after": {"n": 0, "a,": "", "é": 0.0, "b": True}, "none": None,
           "m": None, "op": "c"}])  # fmt: skip
def test_texts_that_are_written_as_is_usual_are_read(events: list[dict[str, Any]]) -> None:
    texts = [_text(event) for event in events]
    alike = [
        at
        for at, (event, text) in enumerate(zip(events, texts, strict=True))
        if (event["before"] is None) == (events[0]["before"] is None)
        and text.count(',"') == _text(_blank(event)).count(',"')
        and not unsafe_texts(pa.array([text.encode()])).any()
    ]
    fitting = _read(texts, _text(_blank(events[0])), b"}")
    found = [] if fitting is None else fitting.at.tolist()
    assert found == alike
    if fitting is not None:
        assert fitting.rows.to_pylist() == [events[at] for at in found]


def _blank(event: dict[str, Any]) -> dict[str, Any]:
    nothing = dict.fromkeys(_USUAL)
    return event | {"before": event["before"] and nothing, "after": nothing, "op": ""}


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 1 << 40))
def test_groups_are_read_with_stencils_as_they_are_without(seed: int) -> None:
    """Groups of several shapes follow one another in one process, so whatever it remembers of
    earlier ones is drawn, too. Shorter tests draw no texts that a stencil leaves to the JSON
    reader among those that it reads.
    """
    chance = Random(seed)
    shapes = [WrittenEvents(chance, wrapped=chance.random() < 0.5) for _ in range(2)]
    for _ in range(4):
        events = chance.choice(shapes)
        usual = chance.choice([0.5, 0.9, 1.0])
        texts = [events.text(usual=usual) for _ in range(chance.choice([1, 3, 40]))]
        exact = chance.random() < 0.5
        template = Template(b"", events.closing, EventShape((), events.payload), exact)
        places = np.flatnonzero([chance.random() < 0.8 for _ in texts] or [True])
        if not len(places):
            continue
        _are_read_alike(texts, places, template, patient=exact or chance.random() < 0.5)


def _are_read_alike(
    texts: list[bytes], places: Integers, template: Template, *, patient: bool
) -> None:
    # A slice, whose texts don't begin where the buffer does.
    array = pa.array([b"{}", *texts], pa.binary())[1:]
    with_, without = (
        read_group(array, places, template, patient=patient, threads=False, stencil_min=texts_min)
        for texts_min in (1, len(texts) + 1)
    )
    assert with_.rows.type.equals(without.rows.type, check_metadata=True)
    mine, plain = (
        dict(zip(read.at.tolist(), map(repr, read.rows.to_pylist()), strict=True))
        for read in (with_, without)
    )
    if patient:
        assert mine == plain
        assert with_.flaws == without.flaws
    else:
        # Which texts are left for another template depends on the others in their block.
        both = mine.keys() & plain.keys()
        assert {at: mine[at] for at in both} == {at: plain[at] for at in both}
        assert not mine.keys() & without.flaws.keys()
        assert not plain.keys() & with_.flaws.keys()


_EVERY_KIND = pa.struct(
    [
        ("n", pa.int64()),
        ("o", pa.struct([("f", pa.float64()), ("z", pa.null()), ("b", pa.bool_())])),
        ("s", pa.string()),
        ("f", pa.float32()),
    ]
)
_USUAL_TEXT = '{"n":-12,"o":{"f":1.5,"z":null,"b":true},"s":"ab","f":0.5}'


@pytest.mark.parametrize("value", ["-12", "1.5", "true", '"ab"', "0.5"])
def test_odd_values_of_each_type_are_read_as_without_stencils(value: str) -> None:
    texts = [_USUAL_TEXT.replace(value, odd, 1).encode() for odd in ("null", *ODD_VALUES)]
    texts = [_USUAL_TEXT.encode(), *texts]
    template = Template(b"", b"}", EventShape((), _EVERY_KIND), exact=True)
    _are_read_alike(texts, np.arange(len(texts)), template, patient=True)


@pytest.mark.slow
def test_texts_that_differ_in_one_byte_are_read_as_without_stencils() -> None:
    """Drawn texts seldom differ from the stencil so little."""
    usual, texts = _USUAL_TEXT, []
    for at in range(len(usual)):
        texts.append(usual[:at] + usual[at + 1 :])
        for sign in '",:n0 }\\a':
            texts += (usual[:at] + sign + usual[end:] for end in (at, at + 1))
    encoded = [text.encode() for text in dict.fromkeys([usual, *texts])]
    template = Template(b"", b"}", EventShape((), _EVERY_KIND), exact=True)
    _are_read_alike(encoded, np.arange(len(encoded)), template, patient=True)


@pytest.mark.parametrize(
    ("of", "value"),
    [(pa.struct([("x", pa.null())]), {"x": None}), (pa.struct([]), {})],
    ids=["an object of nulls without a type", "an object without members"],
)
def test_an_object_whose_members_have_no_gap_is_no_null(of: pa.StructType, value: Any) -> None:
    shape = EventShape((), pa.struct([("n", pa.int64()), ("o", of)]))
    texts = pa.array([_text({"n": n, "o": value}).encode() for n in range(200)], pa.binary())
    template = Template(b"", b"}", shape, exact=True)
    read = read_group(texts, np.arange(200), template, patient=True, threads=False, stencil_min=1)
    assert read.rows.to_pylist() == [{"n": n, "o": value} for n in range(200)]


def test_texts_with_spaces_are_left_although_none_of_them_has_a_separator() -> None:
    event = {"before": None, "after": dict.fromkeys(_USUAL), "none": None, "m": None, "op": "c"}
    spaced = [json.dumps(event, ensure_ascii=False)] * 3
    assert _read(spaced, _text(event), b"}") is None


def test_a_group_is_read_alike_by_stencils_of_several_forms_and_by_the_json_reader() -> None:
    row = {"n": 1, "a,": "x", "é": 0.5, "b": None}
    event: dict[str, Any] = {"before": row, "after": row, "none": None, "m": None, "op": "u"}
    kinds = [
        event,
        {**event, "before": None},
        {**event, "after": {**row, "a,": '"'}},
        {**event, "after": {**row, "n": "many"}},
        {**event, "m": row},
    ]
    events = [kinds[at % 8] if at % 8 < len(kinds) else event for at in range(400)]
    texts = pa.array([_text(each).encode() for each in events])
    template = Template(b"", b"}", _SHAPE, exact=True)
    read = read_group(texts, np.arange(400), template, patient=True, threads=False)
    wrong = [at for at in range(400) if at % 8 == 3]
    assert sorted(read.flaws) == wrong
    assert read.at.tolist() == [at for at in range(400) if at not in wrong]
    expected = [events[at] for at in read.at.tolist()]
    assert read.rows.to_pylist() == expected
