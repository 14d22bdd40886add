"""Records grouped by their form: which names they have, in which order, with any values.

What has one form has one shape as a rule, so that records of many shapes are sorted in one pass
rather than by trying each shape on all of them. A form is a hint only: what is read of a record
by it is proven as anywhere, and what isn't of the shape is left for another.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.event_format import Reader
from lakesplice.formats.events.json_reading.template import Template
from lakesplice.model.arrays import Mask

# What follows a colon and is neither an object nor an array.
_SCALAR = r':[ ]*(?:"(?:[^"\\]|\\.)*"|[^"\[{,}\]]+)'


class RecordForms:
    """The forms of some records, each with the shape of the first that has it."""

    def __init__(self, values: pa.Array, open_: Mask, reader: Reader) -> None:
        """Look at the open records; shows the reader one of each form."""
        at = np.flatnonzero(open_)
        found = pc.replace_substring_regex(values.take(pa.array(at)), _SCALAR, ":")
        of = found.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._form = np.full(len(values), -1, np.int64)
        self._form[at] = of
        _, firsts = np.unique(of, return_index=True)
        self._forms: dict[Hashable, list[int]] = {}
        for place in at[firsts].tolist():
            template = reader.inspect(values[place].as_py())
            if isinstance(template, Template):
                self._forms.setdefault(_key(template), []).append(int(self._form[place]))

    def like(self, row: int, template: Template) -> Mask:
        """Mark the records that may be like a row, whose template it is."""
        forms = [int(self._form[row]), *self._forms.get(_key(template), ())]
        marked: Mask = np.isin(self._form, forms)
        return marked


def _key(template: Template) -> Hashable:
    return template.prefix, template.suffix, template.shape
