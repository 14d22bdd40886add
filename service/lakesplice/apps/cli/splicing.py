"""`lakesplice splice`: change rows of any Parquet file, copying the unchanged pages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakesplice.apps.cli.output import Listing, ListingOption, json_line
from lakesplice.apps.cli.progress import progress_bar

if TYPE_CHECKING:
    from lakesplice.apps.library.splice_file import SpliceSummary

KeyOption = Annotated[
    str | None,
    typer.Option("--key", help="Columns by which to find a row, separated by commas."),
]
ByPositionOption = Annotated[
    str | None,
    typer.Option("--by-position", help="Column of the changes with row positions, from 0."),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many columns to encode at the same time; without it one per core, up to 8.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        help="Read the encoded pages back and compare them before the file gets its name."
    ),
]
EraseOption = Annotated[
    bool,
    typer.Option("--erase", help="Remove every trace of old values, also from dictionaries."),
]


def splice(
    source: Annotated[Path, typer.Argument(help="The Parquet file; it isn't changed.")],
    changes: Annotated[
        Path, typer.Option("--changes", help="Parquet file with a row for each row to change.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The new file to write.")],
    key: KeyOption = None,
    by_position: ByPositionOption = None,
    require_all: Annotated[
        bool, typer.Option("--require-all", help="Fail if no row has the key of a change.")
    ] = False,
    threads: ThreadsOption = None,
    verify: VerifyOption = True,
    erase: EraseOption = False,
    form: ListingOption = Listing.TABLE,
) -> None:
    """Write a Parquet file with changed rows; only pages that change are re-encoded.

    Each column of the changes replaces the file's column of that name in the rows found; columns
    that the changes lack are unchanged.
    """
    from lakesplice import splice_file

    names = None if key is None else [name.strip() for name in key.split(",") if name.strip()]
    with progress_bar("splicing") as progress:
        summary = splice_file(
            source,
            changes,
            out,
            key=names,
            by_position=by_position,
            require_all=require_all,
            threads=threads,
            verify=verify,
            erase=erase,
            progress=progress,
        )
    if form is Listing.JSON:
        typer.echo(json_line(asdict(summary)))
        return
    for line in _summary_lines(summary):
        typer.echo(line)
    typer.echo(f"written to {out}", err=True)


def _summary_lines(summary: SpliceSummary) -> list[str]:
    columns = ", ".join(summary.columns)
    lines = [f"rows changed: {summary.rows_changed} of {summary.rows}, in {columns}"]
    if summary.unmatched:
        lines.append(f"changes that found no row: {summary.unmatched}")
    if summary.rewritten:
        lines.append(f"the whole file was re-encoded: {summary.rewritten}")
    else:
        lines.append(f"pages copied: {summary.pages_copied}, encoded: {summary.pages_encoded}")
        if summary.pages_equal:
            lines.append(f"pages given only values that they had: {summary.pages_equal}")
        lines.append(f"bytes copied: {summary.bytes_copied}, encoded: {summary.bytes_encoded}")
    lines += [f"encoded throughout: {name} ({why})" for name, why in summary.encoded_whole.items()]
    if summary.bloom_filters_dropped:
        lines.append(f"bloom filters dropped: {summary.bloom_filters_dropped}")
    lines.append(f"size: {summary.bytes_before} bytes before, {summary.bytes_after} now")
    lines.append(f"seconds: {summary.seconds:.2f}")
    return lines
