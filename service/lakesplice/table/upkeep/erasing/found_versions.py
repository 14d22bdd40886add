"""Finds what a history table has of some rows: every version is a row with a key of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.manifest import Manifest
from lakesplice.planning.keys.requested_key import RequestedKey
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.versions.intervals import NEEDED_COLUMNS, with_intervals
from lakesplice.planning.versions.periods import are_ends
from lakesplice.table.files.base_files import read_rows
from lakesplice.table.protocol.ports import Store
from lakesplice.table.upkeep.erasing.found_parts import (
    FoundParts,
    WantedKeys,
    find_letters,
    find_parts,
    row_schema,
)


def find_versions(
    store: Store, manifest: Manifest, wanted: WantedKeys
) -> tuple[FoundParts, WantedKeys]:
    """Search as `find_parts` does, with keys of `row_schema`. Return also the keys of the rows to
    erase: of a history table those of all versions, of others `wanted`.

    Rows of a history table count as live if they have a current version. Blocks; reads the keys of
    every base file of a history table. `CorruptFileError`, `StorageError`.
    """
    schema = manifest.schema
    if not schema.keeps_versions:
        return find_parts(store, manifest, wanted), wanted
    found_rows = pa.concat_tables(_versions(store, manifest, wanted))
    versions = found_rows.filter(pc.invert(are_ends(found_rows)))
    hashes = key_hash(versions, schema)
    values = versions.select(list(schema.key)).to_pylist()
    of_versions = WantedKeys.of([RequestedKey(one, hashes.at(at)) for at, one in enumerate(values)])
    is_current = with_intervals(found_rows, schema).columns[-1]
    letters, unknown = find_letters(store, manifest, row_schema(schema), wanted)
    found = replace(
        find_parts(store, manifest, of_versions),
        live=pc.sum(is_current).as_py() or 0,
        letters=letters,
        unknown_letters=unknown,
    )
    return found, of_versions


def _versions(store: Store, manifest: Manifest, wanted: WantedKeys) -> Iterator[pa.Table]:
    """Yield all versions of the rows and the ends of many rows, from each row group; at least one
    table, maybe empty.
    """
    schema = manifest.schema
    names = tuple(dict.fromkeys((*schema.key, *NEEDED_COLUMNS)))
    yield pa.schema([schema.arrow.field(name) for name in names]).empty_table()
    files = (file for _, file in sorted(manifest.files.items()))
    for rows in read_rows(store, files, schema, names):
        yield rows.filter(pc.or_(are_ends(rows), wanted.of_rows(rows, row_schema(schema))))
