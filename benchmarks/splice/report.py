"""The figures of `benchmarks.splice` as a page of tables and a plot.

Run: python -m benchmarks.splice.report [--figures FILE] [--out docs/benchmarks]

Writes splice.md and splice.svg. Sections of parts that were not measured are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.splice.aims import file_aims, memory_aims, peer_aims, table_aims
from benchmarks.splice.plot import Dot, Line, dot_plot

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
OURS = "lakesplice"
Part = Mapping[str, Any]
Medians = dict[str, dict[str, dict[str, float]]]
_NOBODY: Part = {"contenders": {}}

_HEAD = """\
# The splice compared with its peers

Written by `python -m benchmarks.splice.report` from [figures/splice.json](figures/splice.json),
which `make bench-splice` measures: TPC-DS store_sales as DuckDB generates it (23 columns, key
`ss_item_sk, ss_ticket_number`), {cores} cores, Python {python}. Medians, in seconds.

Every contender starts from the same Parquet file of changes (the key and the changed columns, in
random order) and ends when every reader of the table's Parquet files sees them. Lakesplice runs
`Table.upsert`, then `Table.compact`, with five system columns besides the user's; `compact` alone,
with its commit, is the *merge step*. Peers run MERGE INTO, tuned for two cores. Afterwards each
table's sums were compared with the expected ones{wrong}.

{turns}
"""
_TITLES = {
    "grid": "Five, twenty and fifty per cent",
    "rows": "Whole rows of which little is new",
    "peers": "All peers, end to end",
    "large": "Ten times the size",
}
_IN_TURN = """\
The contenders took turns, round after round, so other load of the machine affected all of them."""
_NOT_IN_TURN = """\

In {sections} each contender finished all its runs before the next one began, so a busy minute may
have affected only one of them."""
_UNVERIFIED = "; **some differ**: {cells}"


def medians(part: Part) -> Medians:
    """Return contender -> cell -> phase -> median of its runs, in seconds."""
    return {
        contender: {
            cell["cell"]: {
                phase: statistics.median(run[phase] for run in cell["runs"])
                for phase in cell["runs"][0]
            }
            for cell in cells
        }
        for contender, cells in part["contenders"].items()
    }


def document(figures: Mapping[str, Any]) -> str:
    """Return the page."""
    machine = figures["machine"]
    wrong = _wrong(figures)
    note = _UNVERIFIED.format(cells=", ".join(wrong)) if wrong else ""
    sections = [_HEAD.format(**machine, wrong=note, turns=_turns(figures))]
    if "grid" in figures:
        sections += [_grid(_TITLES["grid"], figures["grid"]), _PLOT]
    if "rows" in figures:
        sections.append(_whole_rows(figures["rows"]))
    if "peers" in figures:
        sections.append(_peers(figures))
    if "large" in figures:
        sections.append(_grid(_TITLES["large"], figures["large"]))
    if "files" in figures:
        sections += [_one_file(figures["files"]["one_file"]), _wear(figures["files"]["wear"])]
    if "memory" in figures:
        sections.append(_memory(figures["memory"]))
    sections.append(_aims(figures))
    return "\n".join(sections)


_PLOT = "![Seconds per cell, on a logarithmic scale](splice.svg)\n"


def _grid(title: str, part: Part) -> str:
    found = medians(part)
    ours = found.get(OURS, {})
    rows = []
    for cell, phases in ours.items():
        delta = found.get("delta", {}).get(cell, {}).get("whole")
        vectors = found.get("delta-vectors", {}).get(cell, {}).get("whole")
        rows.append(
            [
                *_described(cell),
                _seconds(phases["merge"]),
                _seconds(phases["whole"]),
                _seconds(delta),
                _seconds(vectors),
                _times(delta, phases["merge"]),
                _times(delta, phases["whole"]),
                _times(vectors, phases["whole"]),
            ]
        )
    head = [
        "rows", "columns", "which", "merge step", "end to end", "Delta", "Delta, vectors",
        "merge step against Delta", "end to end against Delta", "against vectors",
    ]  # fmt: skip
    return f"## {title}: scale {part['scale']:g}, {part['rows']:,} rows\n\n{_table(head, rows)}"


def _whole_rows(part: Part) -> str:
    found = medians(part)
    ours, merged, theirs = (found.get(n, {}) for n in (OURS, f"{OURS}-merged", "delta-rs"))
    rows = []
    for cell, phases in ours.items():
        wholes = [one.get(cell, {}).get("whole") for one in (merged, theirs)]
        share, columns, which = _described(cell)
        ratios = (_times(wholes[1], one) for one in (phases["whole"], wholes[0]) if one)
        rows.append(
            [share, columns, which, _seconds(phases["whole"]), *map(_seconds, wholes), *ratios]
        )
    text = (
        "Each change has all columns, but only the number of columns in brackets has new values.\n"
        "`upsert(merge=True)` writes the changes into the base files in its own commit.\n"
    )
    head = [
        "rows", "columns", "which", "upsert, compact", "upsert(merge=True)", "delta-rs",
        "against delta-rs", "merged against delta-rs",
    ]  # fmt: skip
    return f"## {_TITLES['rows']}\n\n{text}\n{_table(head, rows)}"


def _aims(figures: Mapping[str, Any]) -> str:
    ratios = {
        peer: {cell: whole / ours for cell, (whole, ours) in cells.items()}
        for peer, cells in _against_us(figures).items()
    }
    aims = [*table_aims(medians(figures.get("grid", _NOBODY))), *peer_aims(ratios)]
    if "files" in figures:
        aims += file_aims(figures["files"])
    if "memory" in figures:
        aims += memory_aims(figures["memory"])
    rows = [[a.text, f"{a.worst:.2f}", a.where, "yes" if a.met else "**no**"] for a in aims]
    head = ["aim", "worst result", "where", "met"]
    return f"## Aims\n\n{_table(head, rows)}"


def _against_us(figures: Mapping[str, Any]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return peer -> cell -> seconds end to end: the peer's, and Lakesplice's beside it."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    in_grid = medians(figures.get("grid", _NOBODY)).get(OURS, {})
    for part in (figures.get("grid", _NOBODY), figures.get("peers", _NOBODY)):
        measured, beside = medians(part), medians({"contenders": part.get("beside", {})})
        for peer, cells in measured.items():
            ours = beside.get(peer, in_grid)
            if peer != OURS:
                found[peer] = {
                    cell: (seconds["whole"], ours[cell]["whole"])
                    for cell, seconds in cells.items()
                    if cell in ours
                }
    return found


def _peers(figures: Mapping[str, Any]) -> str:
    found, ours = _against_us(figures), medians(figures.get("grid", _NOBODY)).get(OURS, {})
    measured = figures["peers"]["contenders"].values()
    cells = list(dict.fromkeys(cell["cell"] for one in measured for cell in one))
    rows = [
        [
            *_described(cell),
            _seconds(ours.get(cell, {}).get("whole")),
            *(_with_ratio(found[peer].get(cell)) for peer in found),
        ]
        for cell in cells
    ]
    when = "measured in turn with it" if "beside" in figures["peers"] else "in the grid"
    note = (
        f"Seconds, and their ratio to Lakesplice's, {when}. *pyarrow* reads, replaces and writes\n"
        "whole files and knows that this key fits into one number; *copying* copies Lakesplice's\n"
        "base files and changes nothing.\n"
    )
    head = ["rows", "columns", "which", OURS, *found]
    return f"## {_TITLES['peers']}\n\n{note}\n{_table(head, rows)}"


def _with_ratio(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:.2f} ({pair[0] / pair[1]:.1f}×)"


def _one_file(found: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in found:
        splice, plain, copy = (
            statistics.median(one["seconds"][way]) for way in ("splice", "plain", "copy")
        )
        rows.append(
            [
                one["change"], f"{splice:.3f}", f"{copy:.3f}", f"{plain:.3f}",
                f"{splice - copy:.3f}", f"{splice / plain:.2f}",
            ]
        )  # fmt: skip
    head = ["change", "splice", "copying", "plain rewrite", "splice - copying", "splice / plain"]
    size = found[0]["bytes"] / 2**20
    return f"## One file of {size:.0f} MiB\n\n{_table(head, rows)}"


def _wear(wear: Mapping[str, Any]) -> str:
    rows = [
        [engine, *(f"{statistics.median(s[w]):.3f}" for w in ("worn", "fresh")),
         f"{statistics.median(s['fresh']) / statistics.median(s['worn']):.3f}"]
        for engine, s in wear["scan_seconds"].items()
    ]  # fmt: skip
    more = wear["bytes_worn"] / wear["bytes_fresh"] - 1
    text = (
        f"{wear['splices']} splices in a row, each of 1 % of the rows, anywhere, in 3 columns:"
        f" {wear['bytes_worn']:,} bytes,\nwritten fresh {wear['bytes_fresh']:,}: {more:+.1%}.\n"
    )
    head = ["full scan by", "spliced", "fresh", "speed against fresh"]
    return f"## After {wear['splices']} splices\n\n{text}\n{_table(head, rows)}"


def _memory(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            one["change"],
            f"{one['peak_bytes'] / 1e6:.0f}",
            f"{one['rows_changed']:,}",
            f"{one['pages_encoded']:,}",
            f"{one['seconds']:.1f}",
        ]
        for one in found
    ]
    head = ["changes", "MB at most", "rows changed", "pages encoded", "seconds"]
    size = f"{found[0]['bytes'] / 1e9:.1f} GB, with {found[0]['threads']} threads"
    text = "Anonymous memory of a process that runs only `lakesplice.splice_file`, by key.\n"
    return f"## Memory for a file of {size}\n\n{text}\n{_table(head, rows)}"


def plot(part: Part) -> str:
    """Return the grid as SVG: a line per cell, a dot per contender, a logarithmic scale."""
    found = medians(part)
    series = {
        "merge step": {cell: p["merge"] for cell, p in found.get(OURS, {}).items()},
        "Lakesplice, end to end": {cell: p["whole"] for cell, p in found.get(OURS, {}).items()},
        "Delta, copy-on-write": {c: p["whole"] for c, p in found.get("delta", {}).items()},
        "Delta, deletion vectors": {
            c: p["whole"] for c, p in found.get("delta-vectors", {}).items()
        },
    }
    cells = list(series["merge step"])
    lines = [
        Line(
            "{}, {} of 23 columns, {}".format(*_described(cell)),
            tuple(Dot(name, values[cell]) for name, values in series.items() if cell in values),
        )
        for cell in cells
    ]
    return dot_plot("store_sales: from a file of changes to every reader", lines, tuple(series))


def _turns(figures: Mapping[str, Any]) -> str:
    one_by_one = [
        f"*{title}*"
        for part, title in _TITLES.items()
        if part in figures and not figures[part].get("in_turn")
    ]
    if not one_by_one:
        return _IN_TURN
    return _IN_TURN + _NOT_IN_TURN.format(sections=" and ".join(one_by_one))


def _wrong(figures: Mapping[str, Any]) -> list[str]:
    return [
        f"{contender} {cell['cell']}"
        for part in _TITLES
        for contender, cells in figures.get(part, {"contenders": {}})["contenders"].items()
        for cell in cells
        if not cell["right"]
    ]


def _described(cell: str) -> tuple[str, str, str]:
    share, columns, spread = cell.split("-")
    return f"{int(share)} %", columns.lstrip("0").replace("(", " ("), spread


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _times(theirs: float | None, ours: float) -> str:
    return "" if theirs is None else f"{theirs / ours:.1f}×"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Write the page and the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, default=DOCS / "figures" / "splice.json")
    parser.add_argument("--out", type=Path, default=DOCS)
    args = parser.parse_args()
    figures = json.loads(args.figures.read_text())
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "splice.md").write_text(document(figures))
    if OURS in figures.get("grid", {"contenders": {}})["contenders"]:
        (args.out / "splice.svg").write_text(plot(figures["grid"]))


if __name__ == "__main__":
    main()
