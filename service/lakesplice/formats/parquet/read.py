"""Reading base files: only such as their manifest describes, page checksums verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NoReturn, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from lakesplice.errors import CorruptFileError, StorageError
from lakesplice.model.address import BaseFile
from lakesplice.model.schema import SYSTEM_FIELDS, TableSchema


class BaseReader:
    """One base file, read row group by row group in the layout of the present schema.

    Columns that were added after the file was written are null. Opening checks the footer against
    the manifest: row count, and column names, order and types as some version of the schema had
    them, so that a damaged name is not taken for a column that was missing. Every method blocks and
    raises `CorruptFileError` naming the file, or `StorageError` where the store failed.
    """

    def __init__(self, source: pa.NativeFile, file: BaseFile, schema: TableSchema) -> None:
        self._source, self._schema, self._path = source, schema, file.path
        with _named(self._path):
            self._file = pq.ParquetFile(source, page_checksum_verification=True)
            self._names = frozenset(self._file.schema_arrow.names)
        self._check_footer(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    @property
    def names(self) -> frozenset[str]:
        """The columns that the file has; of its schema's, the others were added later."""
        return self._names

    @cached_property
    def row_groups(self) -> tuple[tuple[int, int], ...]:
        """The half-open ranges of rows of the file's row groups."""
        footer = self._file.metadata
        ranges, first = [], 0
        for group in range(footer.num_row_groups):
            last = first + footer.row_group(group).num_rows
            ranges.append((first, last))
            first = last
        return tuple(ranges)

    def read(self, row_group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row group's columns in the order asked for, all by default."""
        layout = self._schema.arrow
        fields = [layout.field(name) for name in (layout.names if columns is None else columns)]
        present = [field.name for field in fields if field.name in self._names]
        with _named(self._path):
            table = self._file.read_row_group(row_group, columns=present)
        first, last = self.row_groups[row_group]
        if table.num_rows != last - first:
            self._refuse("a row group has another number of rows than its footer says")
        return pa.table(
            [
                table.column(field.name)
                if field.name in self._names
                else pa.nulls(last - first, field.type)
                for field in fields
            ],
            schema=pa.schema(fields),
        )

    def matching(self, condition: pc.Expression) -> tuple[int, ...]:
        """Return the row groups that may hold rows matching `condition`, by the footer's
        statistics.
        """
        with _named(self._path):
            fragment = ds.ParquetFileFormat().make_fragment(self._source)
            kept = fragment.subset(filter=condition, schema=self._schema.arrow)
            return tuple(group.id for group in kept.row_groups)

    def _check_footer(self, file: BaseFile) -> None:
        found = self._file.schema_arrow
        count = len(found.names) - len(SYSTEM_FIELDS)
        expected = pa.schema([*self._schema.user_fields[: max(count, 0)], *SYSTEM_FIELDS])
        if count not in self._schema.versions or not found.equals(expected):
            self._refuse("a base file's columns are those of no version of its table")
        last = self.row_groups[-1][1] if self.row_groups else 0
        if not self._file.metadata.num_rows == last == file.rows:
            self._refuse("a base file has another number of rows than its manifest says")

    def _refuse(self, what: str) -> NoReturn:
        raise CorruptFileError(f"{what}; restore the file", path=self._path)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say which file it was; an error number means that the store failed, not the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise StorageError("a base file cannot be read", path=path, cause=str(error)) from error
        raise CorruptFileError(
            "a base file cannot be decoded; restore it", path=path, cause=str(error)
        ) from error
