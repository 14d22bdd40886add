"""`lakesplice read`: a table's rows in either view, filtered, in a chosen format."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from lakesplice.apps.cli.options import (
    AsOfOption,
    AtOffsetsOption,
    ConfigOption,
    PinOption,
    TableArgument,
    lake_options,
    parse_offset,
)
from lakesplice.apps.cli.output import json_line, print_table
from lakesplice.errors import UsageError
from lakesplice.model.names import SYSTEM_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from lakesplice.model.schema import TableSchema

ROWS_SHOWN = 50


class Format(StrEnum):
    """What the rows are written as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class View(StrEnum):
    """Which state is read."""

    REAL_TIME = "real_time"
    READ_OPTIMISED = "read_optimised"


FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="SQL condition, such as \"status = 'open' and total > 10\"; see docs/edits.md.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        min=0, help=f"How many rows at most; without it {ROWS_SHOWN} for a table, otherwise all."
    ),
]


def read(
    table: TableArgument,
    view: Annotated[
        View,
        typer.Option(help="real_time: base files and deltas; read_optimised: base files only."),
    ] = View.REAL_TIME,
    columns: Annotated[
        str | None, typer.Option(help="Columns to show, separated by commas; without it all.")
    ] = None,
    where: FilterOption = None,
    version: Annotated[
        int | None, typer.Option("--version", min=0, help="The version; the newest without it.")
    ] = None,
    as_of: AsOfOption = None,
    pin: PinOption = None,
    at_offset: AtOffsetsOption = None,
    limit: LimitOption = None,
    form: Annotated[
        Format, typer.Option("--format", help="JSON is one object per line, with bytes in Base64.")
    ] = Format.TABLE,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write to this new file, not to the screen.")
    ] = None,
    include_deleted: Annotated[
        bool, typer.Option("--include-deleted", help="Show deleted rows too.")
    ] = False,
    include_system: Annotated[
        bool, typer.Option("--include-system", help="Show the system columns too.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Show a table's rows: those of the base files, with the waiting changes applied."""
    from lakesplice import Table

    if form is Format.PARQUET and out is None and sys.stdout.isatty():
        raise UsageError("Parquet is binary; write it to a file with --out")
    offsets = dict(map(parse_offset, at_offset)) if at_offset else None
    asked: dict[str, Any] = {"version": version, "as_of": as_of, "pin": pin, "at_offsets": offsets}
    opened = Table.open(table, **asked, options=lake_options(config))
    condition = _condition(where, opened.snapshot.manifest.schema)
    shown = _split(columns) or opened.schema.names
    if include_system:
        shown = [*shown, *SYSTEM_COLUMNS]
    columns_shown = list(dict.fromkeys(shown))
    batches = opened.scan(view.value, columns_shown, condition, include_deleted=include_deleted)
    most = limit if limit is not None else ROWS_SHOWN + 1 if form is Format.TABLE else None
    tables = _selected(batches, most)
    _write(tables, form, out, cut=limit is None)


def _split(columns: str | None) -> list[str]:
    return [name.strip() for name in (columns or "").split(",") if name.strip()]


def _condition(where: str | None, schema: TableSchema) -> pc.Expression | None:
    """The condition, over the table's columns by any of their names, and its system columns."""
    if where is None:
        return None
    import pyarrow as pa

    from lakesplice.planning.filtering.expressions import edit_condition
    from lakesplice.planning.filtering.filters import stored_names

    names = stored_names(schema)
    fields = [schema.arrow.field(stored).with_name(name) for name, stored in names.items()]
    return edit_condition(where, pa.schema(fields))


def _selected(batches: pa.RecordBatchReader, most: int | None) -> Iterator[pa.Table]:
    """Yield at least one table, so that the columns are known even without rows."""
    left = most
    empty = batches.schema.empty_table()
    for table in itertools.chain([empty], map(_as_table, batches)):
        shown = table if left is None else table.slice(0, left)
        yield shown
        if left is not None:
            left -= shown.num_rows
            if left <= 0:
                return


def _as_table(batch: pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def _write(tables: Iterator[pa.Table], form: Format, out: Path | None, *, cut: bool) -> None:
    if form is Format.TABLE and out is None:
        _print(list(tables), cut)
        return
    if out is None:
        _stream(tables, form, sys.stdout.buffer)
        return
    try:
        with out.open("xb") as sink:
            _stream(tables, form, sink)
    except FileExistsError:
        raise UsageError("the file exists; choose another name", out=str(out)) from None
    typer.echo(f"written to {out}", err=True)


def _print(tables: Sequence[pa.Table], cut: bool) -> None:
    import pyarrow as pa

    whole = pa.concat_tables(tables)
    if not whole.num_rows:
        typer.echo("no rows", err=True)
    hidden = cut and whole.num_rows > ROWS_SHOWN
    rows = whole.slice(0, ROWS_SHOWN) if hidden else whole
    print_table(rows.to_pylist(), rows.column_names, sys.stdout)
    if hidden:
        typer.echo(f"the first {ROWS_SHOWN} rows; see --limit", err=True)


def _stream(tables: Iterator[pa.Table], form: Format, sink: BinaryIO) -> None:
    import pyarrow.parquet as pq

    writer: Any = None
    for at, table in enumerate(tables):
        match form:
            case Format.PARQUET:
                writer = writer or pq.ParquetWriter(sink, table.schema, compression="zstd")
                writer.write_table(table)
            case Format.CSV:
                sink.write(_as_csv(table, header=at == 0))
            case Format.JSON:
                lines = "".join(f"{json_line(row)}\n" for row in table.to_pylist())
                sink.write(lines.encode())
            case Format.TABLE:
                raise UsageError("a table is for the screen; choose another --format with --out")
    if writer:
        writer.close()
    sink.flush()


def _as_csv(table: pa.Table, *, header: bool) -> bytes:
    import polars as pl
    import polars.selectors as cs

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    # Bytes have no natural text form.
    text = frame.with_columns(cs.binary().bin.encode("base64"))
    return text.write_csv(None, include_header=header, null_value="").encode()
