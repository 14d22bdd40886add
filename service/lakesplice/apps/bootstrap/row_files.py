"""Finds Parquet and CSV files that hold a table's rows, and reads their parts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from lakesplice.errors import UsageError
from lakesplice.model.progress.shadow_plan import KeyBound
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.source_rows.file_values import (
    InexactError,
    exact_values,
    values_of_texts,
)
from lakesplice.storage.stores import AnyStore

_WILDCARDS = "*?["
_PARQUET, _CSV = ".parquet", ".csv"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A row group of a Parquet file, or a whole CSV file; `size` is the file's, in bytes."""

    path: str
    group: int
    size: int

    @property
    def as_bound(self) -> KeyBound:
        """The part in the form in which a shadow's plan stores it."""
        return self.path, str(self.group), str(self.size)

    @classmethod
    def of_bound(cls, bound: KeyBound) -> FilePart:
        """Read `as_bound` back."""
        path, group, size = bound
        return cls(path, int(group), int(size))


def split_glob(glob: str) -> tuple[str, str]:
    """Return the folder above a glob's first wildcard, and the glob within it."""
    at = min((glob.find(sign) for sign in _WILDCARDS if sign in glob), default=len(glob))
    folder, _, _ = glob[:at].rpartition("/")
    return folder or ("/" if glob.startswith("/") else "."), glob[len(folder) :].lstrip("/")


def file_parts(store: AnyStore, pattern: str) -> list[FilePart]:
    """Return the parts of all files in a store whose paths match, ordered by path. Blocks.

    Raises `UsageError` if there are no such files, or if one is neither Parquet nor CSV.
    """
    prefix = pattern[: min((pattern.find(s) for s in _WILDCARDS if s in pattern), default=0)]
    paths = sorted(path for path in store.list(prefix) if fnmatchcase(path, pattern))
    if not paths:
        raise UsageError("no files match", files=pattern, folder=str(store))
    return [part for path in paths for part in _parts(store, path)]


def rows_of_part(
    store: AnyStore, part: FilePart, schema: SourceSchema, excluded: Collection[str] = ()
) -> pa.Table:
    """Return a part's rows in the columns and types of a schema. Blocks.

    Raises `UsageError` if the file has changed, if it has other columns (`excluded` columns are
    left out), or if a value doesn't fit its column's type exactly.
    """
    if store.size(part.path) != part.size:
        raise UsageError("a file changed since it was listed; give --again", path=part.path)
    is_text = part.path.endswith(_CSV)
    read = _csv(store, part.path) if is_text else _row_group(store, part)
    names = [field.name for field in schema.fields]
    _require_same(part.path, set(read.column_names) - set(excluded), set(names))
    columns = {}
    for field in schema.fields:
        raw = read.column(field.name).combine_chunks()
        try:
            columns[field.name] = (values_of_texts if is_text else exact_values)(field, raw)
        except InexactError as error:
            raise UsageError(
                f"a column of a file can't be taken: {error}", path=part.path, column=field.name
            ) from error
    return pa.table(columns)


def _require_same(path: str, there: set[str], wanted: set[str]) -> None:
    if lacking := sorted(wanted - there):
        raise UsageError(
            "a file lacks columns that the topic's records have", path=path, columns=lacking
        )
    if more := sorted(there - wanted):
        raise UsageError(
            "a file has columns that the topic's newest record lacks: change a row, or give"
            " --excluded if the connector leaves them out",
            path=path,
            columns=more,
        )


def _parts(store: AnyStore, path: str) -> list[FilePart]:
    size = store.size(path) or 0
    if path.endswith(_CSV):
        return [FilePart(path, 0, size)]
    if not path.endswith(_PARQUET):
        raise UsageError("a file is neither .parquet nor .csv", path=path)
    with _opened(store, path) as file:
        return [FilePart(path, group, size) for group in range(file.num_row_groups)]


def _row_group(store: AnyStore, part: FilePart) -> pa.Table:
    with _opened(store, part.path) as file:
        return file.read_row_group(part.group, use_threads=False)


def _opened(store: AnyStore, path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(store.open(path))
    except pa.ArrowInvalid as error:
        raise UsageError("a file isn't Parquet", path=path, cause=str(error)) from error


def _csv(store: AnyStore, path: str) -> pa.Table:
    """Read a file with a header; NULL is nothing or `\\N`, without quotes."""
    alone, lines = csv.ReadOptions(use_threads=False), csv.ParseOptions(newlines_in_values=True)
    try:
        with store.open(path) as file:
            names = csv.open_csv(file, alone, lines).schema.names
        with store.open(path) as file:
            return csv.read_csv(
                file,
                alone,
                lines,
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=["", "\\N"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
    except pa.ArrowInvalid as error:
        raise UsageError("a file isn't CSV", path=path, cause=str(error)) from error
