"""The fast reader reads real writers' events once: their text proves that every null was written,
so none is read again strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.canal.reader import CanalReader
from lakesplice.formats.events.debezium.envelope import EnvelopeReader
from lakesplice.formats.events.event_format import Reader
from lakesplice.formats.events.json_reading.null_proof import NullProof
from lakesplice.formats.events.json_reading.record_group import slices_after
from lakesplice.formats.events.json_reading.template import Template
from lakesplice.formats.events.json_reading.texts import read_texts
from lakesplice.formats.events.maxwell.reader import MaxwellReader
from tests.support import canal_messages, maxwell_events
from tests.support.canal_messages import message, ticdc
from tests.support.debezium import DECLARED, TABLE, Flavour, Record, image, payload
from tests.support.maxwell_events import event

_CONTEXT = DecodeContext(TABLE, declare({**DECLARED, "stock": "int"}))
_NULLS = {"name": None, "price": None}


def _unproven(reader: Callable[[DecodeContext], Reader], records: Sequence[Record]) -> list[int]:
    """The records of which the text doesn't prove that every null was written."""
    return np.flatnonzero(_evidence(reader, records).unproven).tolist()


def _evidence(reader: Callable[[DecodeContext], Reader], records: Sequence[Record]) -> NullProof:
    values = pa.array([value for _, value in records], pa.binary())
    template = reader(_CONTEXT).inspect(values[0].as_py())
    assert isinstance(template, Template)
    texts = slices_after(values, template.prefix, template.suffix)
    rows = read_texts(texts, template.shape.reading, template.closing, threads=False)
    assert isinstance(rows, pa.Array)
    return template.shape.prove(texts, rows)


_DEBEZIUM = (
    payload("c", None, image(1)),
    payload("c", None, image(2, **_NULLS)),
    payload("u", image(2, name=None), image(2, price=None, stock=None)),
    payload("d", image(2, stock=None), None),
)


@pytest.mark.parametrize("schemas", [True, False])
def test_debeziums_nulls_are_all_seen(schemas: bool) -> None:
    flavour = Flavour(schemas=schemas)
    assert _unproven(EnvelopeReader, [flavour.record(one, 1) for one in _DEBEZIUM]) == []


@pytest.mark.parametrize("write", [message, ticdc], ids=["canal", "ticdc"])
def test_canals_nulls_are_all_seen(write: Callable[..., Record]) -> None:
    row = canal_messages.row
    records = [
        write("INSERT", [row(1)]),
        write("INSERT", [row(1, **_NULLS), row(2), row(3, name=None)]),
        write("UPDATE", [row(1, name=None)], [{"name": "was", "price": None}]),
        write("UPDATE", [row(1), row(2, **_NULLS)], [{"name": None}, {"price": "1"}]),
        write("UPDATE", [row(1, **_NULLS)], [{}]),
        write("DELETE", [row(1, price=None)]),
    ]
    assert _unproven(CanalReader, records) == []


def test_a_canal_message_that_lacks_a_column_is_examined_again() -> None:
    row = canal_messages.row
    lacking = {name: value for name, value in row(1, price=None).items() if name != "name"}
    records = [
        message("INSERT", [row(1)]),
        message("INSERT", [lacking]),
        message("UPDATE", [lacking], [{"name": None}]),
        message("UPDATE", [row(1)], [{"name": None}]),
    ]
    assert _unproven(CanalReader, records) == [1, 2]


def test_maxwells_nulls_are_all_seen() -> None:
    row = maxwell_events.row
    records = [
        event("insert", row(1)),
        event("insert", row(1, **_NULLS)),
        event("update", row(1, **_NULLS), {"name": "was", "price": 1}),
        event("update", row(1, name=None), {"name": "was", "price": None}),
        event("update", row(1), {"stock": None, "name": None}),
        event("delete", row(1, stock=None)),
    ]
    evidence = _evidence(MaxwellReader, records)
    assert not evidence.unproven.any()
    assert evidence.notes is not None
    # The columns that `old` names as null, by their place in the row.
    assert evidence.notes.to_pylist() == [[], [], [], [2], [3, 1], []]
