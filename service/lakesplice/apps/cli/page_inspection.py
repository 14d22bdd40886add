"""`lakesplice inspect pages`: the pages of a Parquet file, or what two files share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakesplice.apps.cli.output import Listing, ListingOption, show
from lakesplice.errors import UsageError

if TYPE_CHECKING:
    from lakesplice.splicing.structures.source import SourceFile

_PAGE_COLUMNS = (
    "row_group",
    "column",
    "page",
    "kind",
    "encoding",
    "first_row",
    "values",
    "offset",
    "bytes",
    "bytes_unpacked",
    "checksum",
)
_SHARED_COLUMNS = ("column", "pages", "pages_shared", "bytes", "bytes_shared")
_SUM = "(sum)"


def inspect_pages(
    file: Annotated[Path, typer.Argument(help="A Parquet file, written by any program.")],
    newer: Annotated[
        Path | None,
        typer.Argument(help="A second file: show how many of its pages are in the first one too."),
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", help="Only this column; write a nested one with dots.")
    ] = None,
    row_group: Annotated[
        int | None, typer.Option("--row-group", min=0, help="Only this row group, counted from 0.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to show at most.")] = 1000,
    form: ListingOption = Listing.TABLE,
) -> None:
    """List the pages of a Parquet file. With two files, show how many pages they share, per column
    and in all.

    Pages are shared if header and bytes are equal, wherever they are in the files.
    """
    if newer is not None:
        if column is not None or row_group is not None:
            raise UsageError("two files are compared whole; leave out --column and --row-group")
        show(_shared(_opened(file), _opened(newer), form), _SHARED_COLUMNS, form, "no columns")
        return
    source = _opened(file)
    rows = _pages(source, _columns(source, column), _row_groups(source, row_group))
    show(islice(rows, limit), _PAGE_COLUMNS, form, "no pages")
    if next(rows, None) is not None:
        typer.echo("there are more; see --limit, --column, --row-group", err=True)


def _opened(file: Path) -> SourceFile:
    import pyarrow as pa

    from lakesplice.splicing.structures.source import SourceFile

    try:
        return SourceFile(pa.OSFile(str(file)), str(file))
    except OSError as error:
        raise UsageError(
            "a file cannot be opened; check its path and rights", path=str(file), cause=str(error)
        ) from error


def _columns(source: SourceFile, name: str | None) -> list[int]:
    leaves = source.footer.leaves
    found = [leaf.column for leaf in leaves if name in (None, leaf.name)]
    if name is not None and not found:
        raise UsageError(
            "the file has no such column", column=name, columns=[leaf.name for leaf in leaves]
        )
    return found


def _row_groups(source: SourceFile, number: int | None) -> range:
    count = len(source.footer.row_groups)
    if number is None:
        return range(count)
    if number >= count:
        raise UsageError(
            "the file has no such row group; the first one is 0", row_group=number, row_groups=count
        )
    return range(number, number + 1)


def _pages(source: SourceFile, columns: list[int], row_groups: range) -> Iterator[dict[str, Any]]:
    for group in row_groups:
        for column in columns:
            yield from _chunk_pages(source, group, column)


def _chunk_pages(source: SourceFile, group: int, column: int) -> Iterator[dict[str, Any]]:
    from lakesplice.splicing.structures.enums import Encoding

    leaf, index = source.leaf(column), source.page_locations(group, column)
    known = frozenset(Encoding)
    number = passed = 0
    for page in source.pages(group, column):
        header, first_row = page.header, None
        if header.is_data:
            if index is not None and number < len(index):
                first_row = int(index.first_rows[number])
            elif not leaf.max_repetition:
                first_row = passed
        yield {
            "row_group": group,
            "column": leaf.name,
            "page": number if header.is_data else None,
            "kind": header.kind.name.lower(),
            "encoding": Encoding(header.encoding).name if header.encoding in known else "?",
            "first_row": first_row,
            "values": header.num_values,
            "offset": page.offset,
            "bytes": page.end - page.offset,
            "bytes_unpacked": page.header_size + header.uncompressed_size,
            "checksum": header.crc is not None,
        }
        if header.is_data:
            number, passed = number + 1, passed + header.num_values


def _shared(before: SourceFile, after: SourceFile, form: Listing) -> Iterator[dict[str, Any]]:
    from lakesplice.splicing.shared_pages import SharedPages, shared_pages

    found = shared_pages(before, after)
    for name, shared in found.items():
        yield {"column": name, **asdict(shared)}
    total = sum(found.values(), SharedPages())
    yield {"column": _SUM if form is Listing.TABLE else None, **asdict(total)}
