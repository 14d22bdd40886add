"""Reading base files: only such as their manifest describes, page checksums verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NoReturn, Self

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import CorruptFileError, StorageError
from lakesplice.formats.parquet.adopted import in_layout, opened, unfit_columns
from lakesplice.model.address import BaseFile
from lakesplice.model.column_values import fill_value
from lakesplice.model.names import POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position
from lakesplice.model.schema import SYSTEM_FIELDS, TableSchema

_POSITION = (POSITION_FILE, POSITION_OFFSET)


class BaseReader:
    """One base file, read row group by row group in the layout of the present schema.

    Columns that were added after the file was written hold their fill or null, and values of
    columns whose name or type changed since are under the present one, of the present one. Opening
    checks the footer against the manifest: row count, and column names, order and types as some
    version of the schema had them, so that a damaged name is not taken for a column that was
    missing. Every method blocks and raises `CorruptFileError` naming the file, or `StorageError`
    where the store failed.
    """

    def __init__(self, source: pa.NativeFile, file: BaseFile, schema: TableSchema) -> None:
        self._source, self._schema, self._path = source, schema, file.path
        with errors_with_path(self._path):
            self._file = opened(source)
            found = self._file.schema_arrow.names
        self._names = self._present_names(found)
        self._check_footer(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    @property
    def names(self) -> frozenset[str]:
        """The columns that the file has, by their present names; of its schema's, the others were
        added later.
        """
        return frozenset(self._names)

    @property
    def is_as_written(self) -> bool:
        """Whether the file is laid out as `write_base` does it, in the present schema."""
        found: bool = self._file.schema_arrow.equals(self._schema.arrow)
        return found

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

    @property
    def row_group_bytes(self) -> tuple[int, ...]:
        """How many bytes each row group has before its compression."""
        footer = self._file.metadata
        return tuple(footer.row_group(at).total_byte_size for at in range(footer.num_row_groups))

    def highest_position(self, row_group: int) -> Position | None:
        """Return a position that no row of a row group is above; None if the footer has none."""
        chunks = self._file.metadata.row_group(row_group)
        bounds = []
        for at in self._positions:
            found = chunks.column(at).statistics
            if found is None or not found.has_min_max:
                return None
            bounds.append(int(found.max))
        return Position(*bounds) if len(bounds) == len(_POSITION) else None

    def read(self, row_group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row group's columns in the order asked for, all by default."""
        layout = self._schema.arrow
        fields = [layout.field(name) for name in (layout.names if columns is None else columns)]
        copied = {f.name: self._copied(f.name) for f in fields}
        present = {self._names[of]: of for of in copied.values() if of in self._names}
        with errors_with_path(self._path):
            table = self._file.read_row_group(row_group, columns=[*present])
            table = table.rename_columns([present[name] for name in table.column_names])
            for name, of in copied.items():
                if name != of and of in table.column_names:
                    table = table.append_column(name, table.column(of))
        first, last = self.row_groups[row_group]
        if table.num_rows != last - first:
            self._refuse("a row group has another number of rows than its footer says")
        with errors_with_path(self._path):
            return in_layout(table, fields, self._fills)

    def read_each(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield what `read` returns of one row group after another."""
        for row_group in range(len(self.row_groups)):
            yield self.read(row_group, columns)

    def matching(self, condition: pc.Expression) -> tuple[int, ...]:
        """Return the row groups that may hold rows matching `condition`, by the footer's
        statistics.
        """
        import pyarrow.dataset as ds  # brings pandas with it, where that is installed

        with errors_with_path(self._path):
            fragment = ds.ParquetFileFormat().make_fragment(self._source)
            try:
                kept = fragment.subset(filter=condition, schema=self._schema.arrow)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                # Others' types, or a condition that fails on a bound, as by a division by zero:
                # nothing is known. Damage is found where the rows are read.
                return tuple(range(len(self.row_groups)))
            return tuple(group.id for group in kept.row_groups)

    @cached_property
    def _positions(self) -> list[int]:
        """Where the columns of the rows' positions are among all columns of the file."""
        columns = self._file.metadata.schema
        found = {columns.column(at).path: at for at in range(len(columns))}
        return [found[name] for name in _POSITION if name in found]

    def _copied(self, name: str) -> str:
        """Return the column whose values a file has for a column that it lacks; the column itself
        if the file has it.
        """
        return name if name in self._names else self._schema.copies.get(name, name)

    def _present_names(self, found: Sequence[str]) -> dict[str, str]:
        """Present names, each with the one in the file. A file of ours has its table's first
        columns, in their order; one that others wrote is known by names alone.
        """
        schema = self._schema
        if schema.adopted:
            return {schema.aliases.get(name, name): name for name in found}
        count = max(len(found) - len(SYSTEM_FIELDS), 0)
        now = (*schema.names[:count], *found[count:])
        return dict(zip(now, found, strict=False))

    def _check_footer(self, file: BaseFile) -> None:
        found = self._file.schema_arrow
        count = len(found.names) - len(SYSTEM_FIELDS)
        expected = pa.schema([*self._schema.user_fields[: max(count, 0)], *SYSTEM_FIELDS])
        known = count in self._schema.versions and (
            found.equals(expected) or any(found.equals(one) for one in self._layouts(count))
        )
        if not (known or (self._schema.adopted and not unfit_columns(self._file, self._schema))):
            self._refuse("a base file's columns don't match any version of its table's schema")
        last = self.row_groups[-1][1] if self.row_groups else 0
        if not self._file.metadata.num_rows == last == file.rows:
            self._refuse("a base file has another number of rows than its manifest says")

    @cached_property
    def _fills(self) -> dict[str, pa.Scalar]:
        filled = self._schema.filled_since(0)
        fills = {c.name: fill_value(c.fill, c.type) for c in filled if c.fill is not None}
        copies = self._schema.copies.items()
        return fills | {name: fills[of] for name, of in copies if of in fills}

    def _layouts(self, count: int) -> Iterator[pa.Schema]:
        """Yield the layouts that files of `count` columns had under earlier schema versions.

        A file keeps its number of columns where a later version changes the type of one.
        """
        if self._schema.former:
            for version, columns in enumerate(self._schema.versions):
                if columns >= count:
                    fields = self._schema.at(version).user_fields[:count]
                    yield pa.schema([*fields, *SYSTEM_FIELDS])

    def _refuse(self, what: str) -> NoReturn:
        raise CorruptFileError(f"{what}; restore the file", path=self._path)


@contextmanager
def errors_with_path(path: str) -> Iterator[None]:
    """Say which file it was; an error number means that the store failed, not the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise StorageError("a base file cannot be read", path=path, cause=str(error)) from error
        raise CorruptFileError(
            "a base file cannot be decoded; restore it", path=path, cause=str(error)
        ) from error
