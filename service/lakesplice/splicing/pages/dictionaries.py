"""Extends a chunk's dictionary at its end.

Old entries keep their places, so pages that refer to them stay valid. The chunk's own key-value
metadata records how many entries the dictionary had when the chunk was last encoded whole, so its
growth is known.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.splicing.pages.new_values import bits
from lakesplice.splicing.structures.footer import Chunk
from lakesplice.splicing.thrift.compact import EMPTY, List, Struct, Value, WireType

_METADATA, _KEY_VALUES = 3, 8  # fields of ColumnChunk and of ColumnMetaData
_ENTRIES = b"lakesplice.dictionary_entries"


def extended(old: pa.Array, values: pa.Array) -> pa.Array:
    """Return `old` followed by those of `values` that it lacks, once each and without nulls.

    Floating-point values are the same if their bits are.
    """
    wanted = pc.unique(bits(values).drop_null())
    # The hash table holds the few values, not the dictionary's entries.
    there = pc.unique(pc.index_in(bits(old), value_set=wanted).drop_null())
    lacking = np.ones(len(wanted), np.bool_)
    lacking[there.to_numpy()] = False
    added = wanted.filter(pa.array(lacking))
    return pa.concat_arrays([old, added.view(old.type)]) if len(added) else old


def positions(entries: pa.Array, values: pa.Array) -> pa.Array:
    """Return the first position in `entries` of each of `values`, as int32; a null stays null.

    `entries` must contain all values. The hash table holds the values, which are few, not the
    entries.
    """
    wanted = pc.unique(values.drop_null())
    found = pc.index_in(entries, value_set=wanted).fill_null(-1).to_numpy()
    there = np.flatnonzero(found >= 0)[::-1]
    first = np.zeros(len(wanted), np.int32)
    first[found[there]] = there
    numbers = pc.index_in(values, value_set=wanted)
    return pa.array(first).take(numbers)


def entries_at_first(chunk: Chunk) -> int | None:
    """Return the number of entries the dictionary had before it was first extended, if known."""
    for pair in _pairs(chunk):
        text = pair.get(2)
        if pair.get(1) == _ENTRIES and isinstance(text, bytes) and text.isdigit():
            return int(text)
    return None


def with_entries_at_first(chunk: Chunk, entries: int | None) -> Chunk:
    """Return the chunk's description with that number recorded; None removes the record."""
    kept = [pair for pair in _pairs(chunk) if pair.get(1) != _ENTRIES]
    if entries is not None:
        text = str(entries).encode()
        kept.append(Struct({1: (WireType.BINARY, _ENTRIES), 2: (WireType.BINARY, text)}))
    pairs = (WireType.LIST, List(WireType.STRUCT, tuple(kept))) if kept else None
    metadata = _metadata(chunk).replaced({_KEY_VALUES: pairs})
    return replace(chunk, raw=chunk.raw.replaced({_METADATA: (WireType.STRUCT, metadata)}))


def _pairs(chunk: Chunk) -> list[Struct]:
    found: Value | None = _metadata(chunk).get(_KEY_VALUES)
    if not isinstance(found, List):
        return []
    return [pair for pair in found.values if isinstance(pair, Struct)]


def _metadata(chunk: Chunk) -> Struct:
    found = chunk.raw.get(_METADATA)
    return found if isinstance(found, Struct) else EMPTY
