"""Provokes faults on the running demo, and measures how long they take to be told and mended.

Run: python -m benchmarks.faults [--prometheus PROGRAM] [--only WORD] [--skip WORD] [--out FILE]

Each fault is provoked once: seconds until the page, the metric and the alert tell it; then the
runbook's remedy, and the seconds until the page is content again and a new row arrives. Without a
Prometheus only the page is asked. Faults that make a folder read-only need root.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.faults.alerts import Alerts
from benchmarks.faults.demo import Demo
from benchmarks.faults.measuring import Fault, measure
from benchmarks.faults.service_faults import SERVICE_FAULTS
from benchmarks.faults.table_faults import TABLE_FAULTS
from benchmarks.faults.topic_faults import TOPIC_FAULTS

_COLUMNS = ("page", "metric", "alert", "mended")


def main() -> None:
    """Read the arguments, run, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prometheus", default=shutil.which("prometheus"))
    parser.add_argument(
        "--only", action="append", default=[], help="faults with this in their name"
    )
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--out", type=Path, help="a file for the figures, in JSON")
    args = parser.parse_args()
    chosen = [
        fault
        for fault in (*TABLE_FAULTS, *TOPIC_FAULTS, *SERVICE_FAULTS)
        if _is_chosen(fault, args.only, args.skip)
    ]
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-faults-", ignore_cleanup_errors=True) as work:
        run(Path(work), chosen, args.prometheus, found)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")
    print(markdown(found))


def run(
    work: Path, faults: list[Fault], prometheus: str | None, found: list[dict[str, Any]]
) -> None:
    """Provoke the faults one after the other, and append what was measured to `found`."""
    with Demo(work / "demo") as demo, ExitStack() as stack:
        alerts = None
        if prometheus is not None:
            rules = demo.command("rules")
            alerts = Alerts(Path(prometheus), work / "prometheus", demo.pages, rules)
            stack.enter_context(alerts)
        for fault in faults:
            found.append(measure(fault, demo, alerts))
            print(json.dumps(found[-1]), flush=True)


def markdown(found: list[dict[str, Any]]) -> str:
    """Return the figures as a table."""
    lines = [
        f"| fault | {' | '.join(_COLUMNS)} | alert's name | runbook's section |",
        f"| --- | {'--- | ' * len(_COLUMNS)}--- | --- |",
    ]
    for one in found:
        seconds = (one.get(f"{column}_seconds") for column in _COLUMNS)
        cells = ["–" if value is None else f"{value:g} s" for value in seconds]
        lines.append(
            f"| {one['fault']} | {' | '.join(cells)} | `{one['alert']}` | {one['section']} |"
        )
    return "\n".join(lines)


def _is_chosen(fault: Fault, only: list[str], skip: list[str]) -> bool:
    wanted = not only or any(word in fault.name for word in only)
    return wanted and not any(word in fault.name for word in skip)


if __name__ == "__main__":
    main()
