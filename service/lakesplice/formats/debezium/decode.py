"""Records of one topic partition to blocks of row images.

The first undecided record is read by the book and becomes the template: all records that start like
it are read with it, in blocks. What it can't settle, without schemas a record of another shape,
becomes the next template. So the work follows the number of schema versions in the batch, not of
records.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.debezium.block import build_block
from lakesplice.formats.debezium.group import read_group, slices_after
from lakesplice.formats.debezium.keys import KeyShape, in_image, inspect_key
from lakesplice.formats.debezium.ledger import Ledger
from lakesplice.formats.debezium.schemaless import Shapes
from lakesplice.formats.debezium.strict import Flaw
from lakesplice.formats.debezium.template import (
    TOMBSTONE,
    Halt,
    Ignored,
    Template,
    inspect,
)
from lakesplice.formats.debezium.values import (
    DeadReason,
    DecodeContext,
    Decoded,
    Rows,
)

# After so many shapes without a schema, records are told apart one by one rather than by trying.
_ROUNDS_MAX = 8
# From this many records per chosen one, copying the chosen costs less than looking at the others.
_SPARSE = 2


def decode(records: pa.RecordBatch, context: DecodeContext) -> Decoded:
    """Decode consecutive records of one topic partition, in offset order; never raises for their
    bytes.

    `records` has the columns `key` and `value`, binary and nullable; others are not looked at.
    Records without a key come in blocks of their own, with an empty `schema.key`: what to do with
    them is the caller's to decide. Nothing at or after the first stop is decoded.
    """
    values, keys = (_binary(records.column(name)) for name in ("value", "key"))
    ledger = Ledger(len(records))
    ledger.ignore(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)), TOMBSTONE)
    empty = pc.equal(pc.binary_length(values), 0).fill_null(False)
    ledger.kill(
        np.flatnonzero(empty.to_numpy(zero_copy_only=False)),
        Flaw(DeadReason.EMPTY, "the value has no bytes"),
    )
    shapes = Shapes(context.declared or {})
    rounds = 0
    while (first := ledger.next_open()) is not None:
        template = inspect(values[first].as_py(), context, shapes)
        key = inspect_key(keys[first].as_py()) if keys[first].is_valid else None
        if not isinstance(template, Template):
            _settle(ledger, first, template)
            continue
        if key and not isinstance(key, Flaw):
            key = in_image(key, template.shape.names)
        if isinstance(key, Flaw):
            ledger.kill([first], key)
            continue
        rounds += 1
        rows = _like(values, keys, template, key, ledger)
        patient = template.exact or rounds > _ROUNDS_MAX
        _decode_group(values, keys, rows, template, key, context, ledger, patient=patient)
        if not template.exact:
            shapes.latest = template.shape.names
        ledger.kill([first], Flaw(DeadReason.NOT_JSON, "the record can't be read in its own shape"))
    return ledger.result()


def _binary(column: pa.Array) -> pa.Array:
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _settle(ledger: Ledger, row: int, verdict: Flaw | Ignored | Halt) -> None:
    if isinstance(verdict, Flaw):
        ledger.kill([row], verdict)
    elif isinstance(verdict, Ignored):
        ledger.ignore([row], verdict.kind)
    else:
        ledger.stop(row, verdict.code, verdict.detail)


def _like(
    values: pa.Array, keys: pa.Array, template: Template, key: KeyShape | None, ledger: Ledger
) -> Rows:
    """The open rows before the end that start as the template does, in value and key."""
    end = ledger.end
    alike = ledger.open[:end].copy()
    values, keys = values.slice(0, end), keys.slice(0, end)
    if template.prefix:
        starts = pc.starts_with(values, template.prefix).fill_null(False)
        alike &= starts.to_numpy(zero_copy_only=False)
    has_key = keys.is_valid().to_numpy(zero_copy_only=False)
    alike &= has_key if key else ~has_key
    if key and key.prefix:
        starts = pc.starts_with(keys, key.prefix).fill_null(False)
        alike &= starts.to_numpy(zero_copy_only=False)
    return np.flatnonzero(alike)


def _decode_group(
    values: pa.Array,
    keys: pa.Array,
    rows: Rows,
    template: Template,
    key: KeyShape | None,
    context: DecodeContext,
    ledger: Ledger,
    *,
    patient: bool,
) -> None:
    first, end = int(rows[0]), int(rows[-1]) + 1
    if end - first <= _SPARSE * len(rows):
        chosen, places = values.slice(first, end - first), rows - first
        origins = np.arange(first, end)
    else:
        chosen, places = values.take(pa.array(rows)), np.arange(len(rows))
        origins = rows
    texts = slices_after(chosen, template.prefix)
    reading = read_group(texts, places, template, patient=patient, threads=context.threads)
    for index, flaw in reading.flaws.items():
        ledger.kill([origins[index]], flaw)
    read = origins[reading.at]
    if len(read):
        read_keys = keys if len(read) == len(keys) else keys.take(pa.array(read))
        build_block(read, reading.rows, read_keys, template.shape, key, context, ledger)
