"""Groups records by their form: the names that they have and their order, whatever the values.

Records of one form usually have one shape. So records of many shapes are sorted in one pass,
instead of trying each shape on all records. A form is only a hint: what is read is proven as
always, and a record that doesn't have the shape is left for another one.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.event_format import Reader
from lakesplice.formats.events.json_reading.template import Template
from lakesplice.model.arrays import Mask

# A value after a colon that is neither an object nor an array.
_SCALAR = r':[ ]*(?:"(?:[^"\\]|\\.)*"|[^"\[{,}\]]+)'


class RecordForms:
    """The forms of some records, each with the shape of its first record."""

    def __init__(self, values: pa.Array, open_: Mask, reader: Reader) -> None:
        """Find the forms of the open records; the reader inspects one record of each form."""
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
        """Mark the records that may be like the record `row`, which has this template."""
        forms = [int(self._form[row]), *self._forms.get(_key(template), ())]
        marked: Mask = np.isin(self._form, forms)
        return marked


def _key(template: Template) -> Hashable:
    return template.prefix, template.suffix, template.shape
