"""A fleet of tables beside Delta's MERGE, and a fleet with three tables in trouble.

Run: python -m benchmarks.fleet_merge [--tables 400] [--changes 100000] [--batches 3]
    [--merge-batches N] [--queries-tables 40] [--contenders lakesplice,merge-loop,merge-queries]
    [--minutes 5] [--rate 400] [--goal 2m] [--trigger 30s] [--parts rate,freshness] [--out FILE]

`rate`: a real broker has a topic for each table. Tables differ in size, the largest has twenty
times the rows of the smallest, and in heat, the first gets a hundred times as many changes as the
hundredth. Each contender starts with all rows in its tables, and finds so many batches of changes
in the topics that there is always more to read. What counts is how long each batch takes from the
moment at which the changes of the one before were committed, by the clock and in seconds of the
processor of all processes of the contender; medians. The first batch isn't counted. Contenders have
the same records and two cores, one after the other:

lakesplice     the service with its own settings; it compacts meanwhile.
merge-loop     one query over all topics. foreachBatch parses a batch and keeps each key's newest
               change in one pass for all tables, which it may since all have the same columns, and
               then runs a MERGE for each table, two at a time.
merge-queries  a query for each table in one session, each with a MERGE of its own. So many
               queries may need more memory than there is: --queries-tables says how many tables
               take part. They are spread over the whole range of heat, and have as many changes
               each as the mean table of the fleet.

With --merge-batches fewer batches of the peers are counted, since they take long. Then all our
tables are compared with the truth, and some of each peer's.

`freshness`: only Lakesplice, as a service, follows changes at a rate. One table gets records that
can't be read, one gets half of all changes, one gets another column halfway. Every five seconds the
service's metrics say how old each view of each other table is, and what its goal is. At last all
other tables are compared with the truth.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fleet_merge.rates import CONTENDERS, measure, sizes
from benchmarks.fleet_merge.troubles import Following, follow
from benchmarks.soak.fleet import Fleet


def _rates(args: argparse.Namespace, found: dict[str, Any]) -> None:
    fleet = Fleet(args.tables, sizes(args.tables, args.rows), seed=1, with_schemas=False)
    rows: list[dict[str, Any]] = []
    found["rate"] = {"rows": sum(sizes(args.tables, args.rows)), "contenders": rows}
    with tempfile.TemporaryDirectory(prefix="bench-fleet-merge-") as work:
        for one in measure(
            work=Path(work),
            fleet=fleet,
            changes=args.changes,
            batches=args.batches,
            merge_batches=args.merge_batches or args.batches,
            queries_tables=args.queries_tables,
            contenders=args.contenders.split(","),
        ):
            rows.append(one)
            _keep(args.out, found)
            print(json.dumps(one), flush=True)
    found["rate"].update(_ratios(rows))


def _ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    """How many times the better peer's changes per second ours are."""
    ratios = {}
    for figure in ("changes_per_second", "changes_per_processor_second"):
        rates = {one["contender"]: one[figure] for one in rows if figure in one}
        ours = rates.pop("lakesplice", None)
        if ours is not None and rates:
            ratios[f"times_the_better_in_{figure}"] = round(ours / max(rates.values()), 1)
    return ratios


def _keep(out: Path | None, found: dict[str, Any]) -> None:
    """Write what there is so far: a run takes long."""
    if out is not None:
        out.write_text(json.dumps(found, indent=2) + "\n")


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--rows", type=int, default=500, help="rows of the smallest tables")
    parser.add_argument("--changes", type=int, default=100_000, help="of all tables in a batch")
    parser.add_argument("--batches", type=int, default=3, help="that are counted")
    parser.add_argument("--merge-batches", type=int, help="that are counted of the peers")
    parser.add_argument("--queries-tables", type=int, default=40)
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--minutes", type=float, default=5.0, help="of the changes that come live")
    parser.add_argument("--rate", type=int, default=400, help="live changes a second")
    parser.add_argument("--goal", default="2m", help="freshness.real_time of all tables")
    parser.add_argument("--trigger", default="30s", help="how often a live batch begins")
    parser.add_argument("--parts", default="rate,freshness")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "began": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        "tables": args.tables,
    }
    if "rate" in args.parts.split(","):
        _rates(args, found)
    if "freshness" in args.parts.split(","):
        following = Following(args.tables, args.rows, args.rate, args.trigger, args.goal)
        with tempfile.TemporaryDirectory(
            prefix="bench-fleet-merge-", ignore_cleanup_errors=True
        ) as work:
            found["freshness"] = follow(Path(work), following, 60 * args.minutes)
    _keep(args.out, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
