"""Files of other writers that an adoption finds: listed, examined and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.formats.checksum import checksum
from lakesplice.formats.parquet import WrittenBase, delta_stats
from lakesplice.formats.parquet.adopted import is_flat, opened, type_of, unfit_columns
from lakesplice.formats.parquet.read import errors_with_path
from lakesplice.formats.parquet.write import pages_end
from lakesplice.model.schema import Column, TableSchema
from lakesplice.planning.by_hand.hand_fed_schema import stored_values
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.operations import NewColumn, add_columns
from lakesplice.splicing.output.copying import StreamSink
from lakesplice.splicing.structures.footer import read_footer
from lakesplice.table.files.page_rewriter import stats_of
from lakesplice.table.protocol.layout import is_base_path
from lakesplice.table.protocol.ports import Store

_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as its footer describes it; `unfit` says why it can't stay as it is, else it is empty.

    `constants` are its values of columns that it lacks. With `fits_with_them` it could stay if it
    had these columns.
    """

    path: str
    bytes: int
    rows: int
    tail_bytes: int
    tail_checksum: str
    stats: str
    unfit: tuple[str, ...] = ()
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    fits_with_them: bool = True


class ForeignFile:
    """An open Parquet file of any writer, read one row group at a time, with `constants` as
    columns.

    Every method blocks, and raises `CorruptFileError` with the file's name; opening an encrypted
    file raises `UnsupportedError`.
    """

    def __init__(
        self, store: Store, path: str, constants: Mapping[str, pa.Scalar] | None = None
    ) -> None:
        self._path = path
        self._constants = constants or {}
        with ExitStack() as closing:
            self._source = closing.enter_context(store.open(path))
            read_footer(self._source, path)  # first: pyarrow ends the process on encrypted files
            with errors_with_path(path):
                self._file = opened(self._source)
            closing.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    @property
    def row_groups(self) -> int:
        """The number of row groups."""
        count: int = self._file.metadata.num_row_groups
        return count

    def columns(self) -> pa.Schema:
        """Return the columns with the Arrow types of their values."""
        if not is_flat(self._file):
            return self._file.schema_arrow
        own = {n: type_of(self._file, at) for at, n in enumerate(self._file.schema_arrow.names)}
        constants = {name: value.type for name, value in self._constants.items()}
        return pa.schema([*(own | constants).items()])

    def read(self, row_group: int, columns: Sequence[Column]) -> pa.Table:
        """Return those of `columns` that the file has, in the types given there.

        `UsageError` for values that a type can't hold.
        """
        there = {name: at for at, name in enumerate(self._file.schema_arrow.names)}
        wanted = [c for c in columns if c.name in there or c.name in self._constants]
        own = [column.name for column in wanted if column.name not in self._constants]
        with errors_with_path(self._path):
            table = self._file.read_row_group(row_group, columns=own)
        rows = self._file.metadata.row_group(row_group).num_rows
        arrays = []
        for column in wanted:
            if column.name in self._constants:
                arrays.append(pa.repeat(self._constants[column.name], rows))
                continue
            values, kind = table.column(column.name), type_of(self._file, there[column.name])
            if values.type != kind:
                values = values.cast(kind)
            arrays.append(stored_values(values, column))
        return pa.table(arrays, names=[column.name for column in wanted])

    def found(self, schema: TableSchema) -> FoundFile:
        """Return the file, as its footer describes it, for a table with this schema."""
        footer, size = self._file.metadata, self._source.size()
        end = pages_end(footer)
        self._source.seek(end)
        tail = self._source.read_buffer(size - end)
        constants, own = self._constants, self._file.schema_arrow.names
        unfit = unfit_columns(self._file, schema, constants.keys())
        fits_with_them = not unfit and constants.keys().isdisjoint(own)
        unfit += tuple(
            f"{name} = {value.as_py()!r} is the partition's value and isn't in the file"
            for name, value in constants.items()
        )
        stats = "" if unfit else delta_stats(footer, schema)
        return FoundFile(
            path=self._path,
            bytes=size,
            rows=footer.num_rows,
            tail_bytes=len(tail),
            tail_checksum=checksum(tail),
            stats=stats,
            unfit=unfit,
            constants=constants,
            fits_with_them=fits_with_them,
        )


def look_into(
    store: Store,
    path: str,
    schema: TableSchema,
    recorded_bytes: int | None,
    constants: Mapping[str, pa.Scalar] | None = None,
) -> FoundFile:
    """Return what a file is, with the values of columns that it lacks; `CorruptFileError` if its
    size differs from the log's.
    """
    with ForeignFile(store, path, constants) as file:
        found = file.found(schema)
        if recorded_bytes is not None and found.bytes != recorded_bytes:
            raise CorruptFileError(
                "a data file has another size than the log says; restore it",
                path=path,
                bytes=found.bytes,
                recorded_bytes=recorded_bytes,
            )
        absent = [name for name in schema.key if name not in file.columns().names]
        if absent:
            raise UnsupportedError(
                "a file lacks columns of the key, so its rows have no key; rewrite it",
                path=path,
                columns=absent,
            )
        return found


def data_files(store: Store) -> Iterator[str]:
    """Yield the Parquet files of a folder, in order, except those in hidden folders. Lists the
    folder.

    Files of an interrupted adoption are left out.
    """
    for path in store.list(""):
        hidden = any(
            part.startswith(".") or (part.startswith("_") and "=" not in part)
            for part in path.split("/")
        )
        if path.endswith(_SUFFIX) and not hidden and not is_base_path(path):
            yield path


def with_constants(
    store: Store, file: FoundFile, schema: TableSchema, sink: pa.NativeFile
) -> WrittenBase:
    """Rewrite a file with its constants as columns; its own pages are copied.

    Blocks. `UnsupportedError`, before anything is written, for a file that can't be spliced.
    """
    fields = [schema.arrow.field(name) for name in file.constants]
    added = [NewColumn(field, file.constants[field.name]) for field in fields]
    with store.open(file.path) as source:
        done = add_columns(source, file.path, added, Edits(), StreamSink(sink))
    return WrittenBase(done.rows, stats_of(done, schema), done.pages_end)
