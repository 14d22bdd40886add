"""Finds Parquet and CSV files that hold a table's rows, and reads their parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakesplice.apps.bootstrap.csv_rows import BLOCK_BYTES, CsvRows, require_dialect
from lakesplice.errors import UsageError
from lakesplice.formats.events.blocks.type_mappings import mapped_column
from lakesplice.model.choices import TypeMapping
from lakesplice.model.progress.shadow_plan import KeyBound
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.source_rows.file_values import (
    InexactError,
    exact_values,
    values_of_texts,
)
from lakesplice.storage.stores import AnyStore, open_store

_WILDCARDS = "*?["
_PARQUET, _CSV = ".parquet", ".csv"
# A timestamp of the older kind, which Spark writes by default.
_INT96 = "INT96"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A row group of a Parquet file (`first`), or rows of a CSV file, from `first` to before
    `stop`; `size` is the file's, in bytes, and `modified_ms` says when it was written.
    """

    path: str
    first: int
    stop: int
    size: int
    modified_ms: int

    @property
    def as_bound(self) -> KeyBound:
        """The part in the form in which a shadow's plan stores it."""
        return self.path, *map(str, (self.first, self.stop, self.size, self.modified_ms))

    @classmethod
    def of_bound(cls, bound: KeyBound) -> FilePart:
        """Read `as_bound` back. Raises `UsageError` for one that an older version stored."""
        if len(bound) != len(fields(cls)):
            raise UsageError(
                "an older version began to fill the table, and divided files in another way; give"
                " --again"
            )
        path, *numbers = bound
        return cls(path, *map(int, numbers))

    def is_changed(self, store: AnyStore) -> bool:
        """Whether the file isn't the one that was listed. Blocks."""
        return (store.size(self.path), store.modified_ms(self.path)) != (
            self.size,
            self.modified_ms,
        )


def split_glob(glob: str) -> tuple[str, str]:
    """Return the folder above a glob's first wildcard, and the glob within it."""
    at = min((glob.find(sign) for sign in _WILDCARDS if sign in glob), default=len(glob))
    folder, _, _ = glob[:at].rpartition("/")
    return folder or ("/" if glob.startswith("/") else "."), glob[len(folder) :].lstrip("/")


def files_in(folder: str, options: Mapping[str, str]) -> AnyStore:
    """Return the store of a folder of files; a bucket is reached with the lake's options."""
    return open_store(folder, options if "://" in folder else None)


def file_parts(store: AnyStore, pattern: str, *, block_bytes: int = BLOCK_BYTES) -> list[FilePart]:
    """Return the parts of all files in a store whose paths match, ordered by path. Blocks: CSV
    files are read whole, since only that shows where rows begin; some blocks are a part.

    Raises `UsageError` if there are no such files, or if one is neither Parquet nor CSV.
    """
    prefix = pattern[: min((pattern.find(s) for s in _WILDCARDS if s in pattern), default=0)]
    paths = sorted(path for path in store.list(prefix) if fnmatchcase(path, pattern))
    if not paths:
        raise UsageError(
            "no file matches; check the pattern in --files", files=pattern, folder=str(store)
        )
    return [part for path in paths for part in _parts(store, path, block_bytes)]


@dataclass
class RowFiles:
    """Reads parts of files in a store, in the columns and types of a schema; `excluded` columns are
    left out. The schema is that of records without type mappings, and says of declared columns
    what their values mean (`with_stated_types`); `mappings` are made here. Parts of a CSV file that
    follow one another are read in one pass. Not thread-safe.
    """

    store: AnyStore
    schema: SourceSchema
    excluded: Collection[str] = ()
    mappings: tuple[TypeMapping, ...] = ()
    block_bytes: int = BLOCK_BYTES
    _open: CsvRows | None = None

    def rows(self, part: FilePart) -> pa.Table:
        """Return a part's rows. Blocks.

        Raises `UsageError` if the file has changed, if it has other columns, or if a value doesn't
        fit its column's type exactly.
        """
        return self._typed(self._read(part), part.path, self.schema, self.excluded)

    def keys(self, part: FilePart) -> pa.Table:
        """Return the keys of a part's rows. Blocks; errors as `rows`."""
        names = self.schema.key
        fields = tuple(field for field in self.schema.fields if field.name in names)
        read = self._read(part)
        others = set(read.column_names) - set(names)
        return self._typed(read, part.path, SourceSchema(fields, names), others)

    def close(self) -> None:
        """Close the file that is open, if one is."""
        if self._open is not None:
            self._open.close()
        self._open = None

    def _typed(
        self, read: pa.Table, path: str, schema: SourceSchema, excluded: Collection[str]
    ) -> pa.Table:
        names = [field.name for field in schema.fields]
        _require_once(path, read.column_names)
        _require_same(path, set(read.column_names) - set(excluded), set(names))
        columns = {}
        for field in schema.fields:
            raw = read.column(field.name).combine_chunks()
            try:
                columns[field.name] = _values(field, raw, self.mappings, path.endswith(_CSV))
                if field.name in schema.key and columns[field.name].null_count:
                    raise InexactError("a row has no value of its key", "give each row its key")
            except InexactError as error:
                raise UsageError(
                    f"a column of a file can't be taken: {error}; {error.remedy}",
                    path=path,
                    column=field.name,
                ) from error
        return pa.table(columns)

    def _read(self, part: FilePart) -> pa.Table:
        if part.is_changed(self.store):
            raise UsageError("a file changed since it was listed; give --again", path=part.path)
        return self._of_csv(part) if part.path.endswith(_CSV) else _row_group(self.store, part)

    def _of_csv(self, part: FilePart) -> pa.Table:
        if self._open is None or self._open.path != part.path or self._open.at > part.first:
            self.close()
            self._open = CsvRows(self.store, part.path, self.block_bytes)
        return self._open.take(part.first, part.stop)


def _values(
    field: SourceField, raw: pa.Array, mappings: tuple[TypeMapping, ...], is_text: bool
) -> pa.Array:
    values = (values_of_texts if is_text else exact_values)(field, raw)
    mapped, wrong = mapped_column(field, values, mappings)
    if wrong is not None and wrong.any():
        first = values.filter(pa.array(wrong))[0]
        raise InexactError(f"{first} is beyond the type to which type_mapping maps the column's")
    return mapped


def _require_once(path: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            "a file has several columns of one name; write each column once",
            path=path,
            columns=twice,
        )


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


def _parts(store: AnyStore, path: str, block_bytes: int) -> list[FilePart]:
    size, modified_ms = store.size(path) or 0, store.modified_ms(path) or 0
    if path.endswith(_CSV):
        stops = _stops_of_csv(store, path, block_bytes)
        firsts = [0, *stops[:-1]]
        return [
            FilePart(path, first, stop, size, modified_ms)
            for first, stop in zip(firsts, stops, strict=True)
        ]
    if not path.endswith(_PARQUET):
        raise UsageError("a file is neither .parquet nor .csv", path=path)
    with _opened(store, path) as file:
        return [
            FilePart(path, group, group + 1, size, modified_ms)
            for group in range(file.num_row_groups)
        ]


def _stops_of_csv(store: AnyStore, path: str, block_bytes: int) -> list[int]:
    """Return the number of the first row behind each part."""
    require_dialect(store, path)
    with closing(CsvRows(store, path, block_bytes)) as rows:
        return list(rows.stops()) or [0]


def _row_group(store: AnyStore, part: FilePart) -> pa.Table:
    with _opened(store, part.path) as file:
        rows = file.read_row_group(part.first, use_threads=False)
        columns = [file.schema.column(at) for at in range(len(file.schema))]
        old = [one.name for one in columns if one.physical_type == _INT96 and one.path == one.name]
        if old:
            others = [_old_timestamps(store, part, old, unit) for unit in ("ms", "ns")]
            _require_micros(part.path, rows.select(others[0].column_names), *others)
        return rows


def _old_timestamps(store: AnyStore, part: FilePart, names: list[str], unit: str) -> pa.Table:
    with _opened(store, part.path, unit) as file:
        return file.read_row_group(part.first, columns=names, use_threads=False)


def _require_micros(path: str, micros: pa.Table, millis: pa.Table, nanos: pa.Table) -> None:
    """Check that timestamps of the type INT96, which are read as whole microseconds, have no
    fraction, and that none wrapped around: Arrow doesn't notice either (pyarrow 26).

    As milliseconds no timestamp wraps around. As nanoseconds those of distant years do, as the
    products here do.
    """
    for name in micros.column_names:
        rough, whole, precise = (
            pc.fill_null(rows.column(name).cast(pa.int64()), 0).to_numpy()
            for rows in (millis, micros, nanos)
        )
        if not np.array_equal(whole // 1000, rough):
            raise UsageError(
                "a timestamp of a file is beyond the year 9999; write null instead",
                path=path,
                column=name,
            )
        if not np.array_equal(whole * 1000, precise):
            raise UsageError(
                "a timestamp of a file has a fraction of a microsecond; write microseconds",
                path=path,
                column=name,
            )


@contextmanager
def _opened(store: AnyStore, path: str, int96: str = "us") -> Iterator[pq.ParquetFile]:
    with store.open(path) as file:
        try:
            opened = pq.ParquetFile(file, coerce_int96_timestamp_unit=int96)
        except pa.ArrowInvalid as error:
            raise UsageError("a file isn't Parquet", path=path, cause=str(error)) from error
        yield opened
