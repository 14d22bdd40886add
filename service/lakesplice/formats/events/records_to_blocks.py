"""Converts records of one topic partition to blocks of row images, whatever their format.

The first open record is read strictly and becomes the template: all records that start like it are
read together. The first record that remains open, which has another shape, becomes the next
template. If there are many shapes, as with partial images, records are first sorted by their form
(`record_forms.py`). So the number of calls depends on the number of shapes in the batch, and each
record is read once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.event_format import Group, KeyForm, Reader, TextSelection
from lakesplice.formats.events.json_reading.record_group import read_group, slices_after
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import (
    TOMBSTONE,
    Halt,
    Ignored,
    Template,
    Truncated,
    Verdict,
)
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.record_forms import RecordForms
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.position import RANK_OTHER, Position

# After so many shapes without a schema, records are sorted by their form instead of by trying.
_TRIES_MAX = 1
# If at most one of so many records is chosen, copying the chosen ones costs less than scanning all.
_SPARSE = 2
# The ways in which a record of another format may start.
_STRANGE = (DeadReason.NOT_AN_ENVELOPE, DeadReason.NOT_JSON)


def settle_records(
    records: pa.RecordBatch,
    reader: Reader,
    stranger: Callable[[bytes], Halt | None],
    *,
    threads: bool,
) -> VerdictLedger:
    """Read consecutive records of one partition; every record before the ledger's end is settled.

    `records` has the columns `key` and `value`, binary and nullable, and `offset`. `stranger` is
    called for a record that isn't an event of the reader's format; it says whether it is one of
    another format.
    """
    run = _Run(records, reader, threads=threads)
    tries = 0
    forms: RecordForms | None = None
    while (first := run.ledger.next_open()) is not None:
        value = run.values[first].as_py()
        if tries == _TRIES_MAX and forms is None:
            forms = RecordForms(run.values, run.ledger.open, reader)
        # Inspected last, since a reader uses the record that it inspected last.
        template = reader.inspect(value)
        if not isinstance(template, Template):
            if isinstance(template, Flaw) and template.reason in _STRANGE:
                template = stranger(value) or template
            run.settle(first, template)
            continue
        key = reader.inspect_key(run.keys[first].as_py(), template)
        if isinstance(key, Flaw):
            run.ledger.kill([first], key)
            continue
        tries += not template.exact
        sorted_ = forms is not None and not template.exact
        among = forms.like(first, template) if forms is not None and sorted_ else None
        run.read(first, template, key, among, patient=template.exact or sorted_)
        run.ledger.kill(
            [first],
            Flaw(DeadReason.NOT_JSON, "the record differs from the shape that was found for it"),
        )
    return run.ledger


def _binary(column: pa.Array) -> pa.Array:
    return column if column.type == pa.binary() else column.cast(pa.binary())


class _Run:
    """Consecutive records, and their ledger."""

    def __init__(self, records: pa.RecordBatch, reader: Reader, *, threads: bool) -> None:
        self.values, self.keys = (_binary(records.column(name)) for name in ("value", "key"))
        self._offsets = records.column("offset").to_numpy()
        self._reader = reader
        self._threads = threads
        self.ledger = VerdictLedger(len(records))
        nothing = self.values.is_null().to_numpy(zero_copy_only=False)
        self.ledger.ignore(np.flatnonzero(nothing), TOMBSTONE)
        empty = pc.equal(pc.binary_length(self.values), 0).fill_null(False)
        self.ledger.kill(
            np.flatnonzero(empty.to_numpy(zero_copy_only=False)),
            Flaw(DeadReason.EMPTY, "the value has no bytes"),
        )

    def settle(self, row: int, verdict: Verdict) -> None:
        if isinstance(verdict, Flaw):
            self.ledger.kill([row], verdict)
        elif isinstance(verdict, Ignored):
            self.ledger.ignore([row], verdict.kind)
        elif isinstance(verdict, Truncated):
            own = Position.of(0, 0, int(self._offsets[row]), 0, RANK_OTHER)
            self.ledger.fence(row, verdict.fence(own))
        else:
            self.ledger.stop(row, verdict.code, verdict.detail)

    def read(
        self,
        own: int,
        template: Template,
        key: KeyForm | None,
        among: Mask | None,
        *,
        patient: bool,
    ) -> None:
        """Read and settle the open records (only those in `among`, if given) that are like the
        template's.
        """
        rows = self._rows_like(own, template, key, among)
        first, end = int(rows[0]), int(rows[-1]) + 1
        if end - first <= _SPARSE * len(rows):
            chosen, places = self.values.slice(first, end - first), rows - first
            origins = np.arange(first, end)
        else:
            chosen, places = self.values.take(pa.array(rows)), np.arange(len(rows))
            origins = rows
        texts = slices_after(chosen, template.prefix, template.suffix)
        reading = (
            template.binary(texts, places)
            if template.binary
            else read_group(texts, places, template, patient=patient, threads=self._threads)
        )
        for index, flaw in reading.flaws.items():
            self.ledger.kill([origins[index]], flaw)
        read = origins[reading.at]
        if len(read):
            whole = len(read) == len(self.keys)
            group = Group(
                records=read,
                payloads=reading.rows,
                keys=self.keys if whole else self.keys.take(pa.array(read)),
                offsets=self._offsets if whole else self._offsets[read],
                template=template,
                key=key,
                source=TextSelection(texts, reading.at),
                notes=reading.notes,
            )
            self._reader.build(group, self.ledger)

    def _rows_like(
        self, own: int, template: Template, key: KeyForm | None, among: Mask | None
    ) -> Integers:
        """Return the open rows before the end whose value and key start like those of the row
        `own`.
        """
        end = self.ledger.end
        alike = self.ledger.open[:end].copy()
        if among is not None:
            alike &= among[:end]
        values, keys = self.values.slice(0, end), self.keys.slice(0, end)
        if template.prefix:
            starts = pc.starts_with(values, template.prefix).fill_null(False)
            alike &= starts.to_numpy(zero_copy_only=False)
        if template.suffix:
            ends = pc.ends_with(values, template.suffix).fill_null(False)
            long = pc.greater_equal(
                pc.binary_length(values), len(template.prefix) + len(template.suffix)
            ).fill_null(False)
            alike &= pc.and_(ends, long).to_numpy(zero_copy_only=False)
        has_key = keys.is_valid().to_numpy(zero_copy_only=False)
        alike &= has_key == has_key[own]
        if key and key.prefix:
            starts = pc.starts_with(keys, key.prefix).fill_null(False)
            alike &= starts.to_numpy(zero_copy_only=False)
        return np.flatnonzero(alike)
