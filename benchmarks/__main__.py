"""All benchmarks, one after the other: `python -m benchmarks`. Each can be run by itself, too.

The figures go to docs/benchmarks/figures/, a JSON file for each; docs/benchmarks/README.md says
what they mean. The machine must have nothing else to do; it takes some two hours on two cores.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures"
_KEEPING = (
    "ingest",
    "many_tables",
    "freshness",
    "merges",
    "layout",
    "changes",
    "change_feed",
    "erasure",
    "iceberg",
    "opening",
    "history",
    "bootstrap",
    "edits",
    "bucket",
    "cluster",
    "month",
    "scrape",
)
_PRINTING = (
    "decode",
    "decode_maxwell",
    "decode_avro",
    "malformed",
    "locate",
    "realtime_read",
)


def main() -> int:
    """Run all; the exit code counts those that failed."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in (*_PRINTING, *_KEEPING):
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        if name in _KEEPING:
            command += ["--out", str(FIGURES / f"{name}.json")]
        failed += subprocess.run(command, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
