"""Searches a table's own files for erased values, on disks and in buckets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lakesplice.apps.erasing.byte_search import search
from lakesplice.errors import MissingFileError
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.ports import UNWATCHED, Progress, Store
from lakesplice.table.upkeep.erasing.found_parts import WantedKeys

_HALF_BYTES = 8


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How much was searched, and for each file the number of values that it has."""

    files: int
    bytes: int
    values: int
    found: dict[str, int]


def search_table(
    store: Store, values: Sequence[str], progress: Progress = UNWATCHED
) -> SearchResult:
    """Search every byte of a table's folder; blocks and reads all of it, which `progress` follows
    by the number of files. A file that is deleted meanwhile has nothing to be found.
    """
    read = {"files": 0, "bytes": 0}
    paths = list(store.list(""))
    progress.expect(len(paths))

    def files() -> Iterator[tuple[str, bytes]]:
        for path in paths:
            # The service may be running, and deletes what nothing names any more.
            with suppress(MissingFileError):
                data = store.read(path)
                read["files"] += 1
                read["bytes"] += len(data)
                yield path, data
            progress.advance(1)

    found = search(files(), values)
    counts = {path: len(has) for path, has in found.items()}
    return SearchResult(read["files"], read["bytes"], len(values), counts)


def values_of_keys(schema: TableSchema, wanted: WantedKeys) -> list[str]:
    """Return the values to search for: the hashes of the keys and, if the key is one column, the
    keys as whole values of that column.
    """
    values = [
        "hex:" + b"".join(half.to_bytes(_HALF_BYTES, "little") for half in key.hash).hex()
        for key in wanted.keys
    ]
    names = schema.versioned_key if schema.keeps_versions else schema.key
    if len(names) == 1:
        (name,) = names
        values += [f"column:{name}={key.values[name]}" for key in wanted.keys]
    return values
