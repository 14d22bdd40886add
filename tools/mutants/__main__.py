"""`python -m mutants`: draw mutants, try each, and say which no test noticed.

The report and what is known of the tests go to `build/mutants/`; a second run reads the latter
unless `--record` says to find out again. Ends with 1 if fewer than `--least` are caught.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from mutants.choice import PACKAGE, PLACES, all_mutants, drawn, written_since
from mutants.contexts import Always, Contexts
from mutants.equivalent import known_equivalents, without_equivalents
from mutants.sites import Mutant
from mutants.trial import Result, copied, record, tried

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"
NICENESS = 10


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for; see `--help`."""
    asked = _parser().parse_args(arguments)
    mutants = all_mutants(ROOT, asked.places or PLACES)
    left_out: list[Mutant] = []
    if asked.at:
        chosen = [mutant for mutant in mutants if mutant.place.endswith(asked.at)]
    else:
        if asked.since:
            mutants = written_since(mutants, asked.since, ROOT)
        mutants, left_out = without_equivalents(mutants, ROOT, known_equivalents())
        chosen = drawn(mutants, asked.count, asked.seed, ROOT)
    if asked.list:
        print("\n".join(_line(mutant) for mutant in chosen))
        return 0
    os.nice(NICENESS)
    os.environ.setdefault("SHARED_CORPORA", str(ROOT.parent / "shared"))
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lakesplice-mutants-") as folder:
        copy = copied(ROOT, Path(folder))
        contexts = Always(asked.tests) if asked.tests else _contexts(copy, asked.record)
        listed = f"{len(left_out)} others are listed as equivalent"
        print(f"{len(chosen)} of {len(mutants)} mutants, seed {asked.seed}; {listed}", flush=True)
        results = []
        for mutant in chosen:
            log = BUILD / "last.log"
            results.append(tried(copy, mutant, contexts, asked.budget, log))
            print(_said(results[-1]), flush=True)
            # After each, since the whole may last hours.
            text = _report(copy, results, asked.seed, len(left_out))
            (BUILD / "report.md").write_text(text, encoding="utf-8")
    share = sum(result.verdict.is_caught for result in results) / max(1, len(results))
    print(f"caught {share:.1%}; the survivors are in {BUILD / 'report.md'}")
    return 0 if share >= asked.least else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants", description="Mutation tests.")
    parser.add_argument("--count", type=int, default=200, help="mutants to draw (200)")
    parser.add_argument("--seed", type=int, default=8, help="what they are drawn from (8)")
    parser.add_argument("--budget", type=float, default=40, help="test seconds per mutant (40)")
    parser.add_argument("--least", type=float, default=0.9, help="share that must be caught (0.9)")
    parser.add_argument("--since", metavar="COMMIT", help="only lines that later commits wrote")
    parser.add_argument("--at", metavar="FILE:LINE", help="every mutant of this line, none drawn")
    parser.add_argument("--tests", nargs="+", help="run these against every mutant, none recorded")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--record", action="store_true", help="find out again what tests call")
    parser.add_argument("places", nargs="*", help=f"modules and folders of {PACKAGE}")
    return parser


def _contexts(copy: Path, again: bool) -> Contexts:
    recorded = BUILD / "contexts.json"
    if again or not recorded.exists():
        print("the tests run once without a mutant, to learn what they call", flush=True)
        return record(copy, recorded, BUILD / "record.log")
    return Contexts.from_file(recorded)


def _line(mutant: Mutant) -> str:
    return f"{mutant.place}  {mutant.kind}: {' '.join(mutant.text.split())[:80]}"


def _said(result: Result) -> str:
    tests = f"{result.tests_run}/{result.tests_known} tests in {result.seconds:.0f} s"
    return f"{result.verdict.value:28} {_line(result.mutant)}  ({tests})"


def _report(copy: Path, results: list[Result], seed: int, left_out: int) -> str:
    counts = Counter(result.verdict.value for result in results)
    lines = [f"# Mutants of seed {seed}", ""]
    lines += [f"- {verdict}: {count}" for verdict, count in counts.most_common()]
    lines += [f"- never drawn, since they are listed as equivalent: {left_out}"]
    red = sorted({test for result in results for test in result.red})
    lines += [f"- counts for nothing, since it fails without a mutant: {test}" for test in red]
    for result in results:
        if not result.verdict.is_caught:
            lines += ["", f"## {result.mutant.place} {result.mutant.kind}", ""]
            lines += [
                f"{result.verdict.value}; ran {result.tests_run} of {result.tests_known} tests"
            ]
            lines += ["", "```diff", *_diff(copy, result.mutant), "```"]
    return "\n".join(lines) + "\n"


def _diff(copy: Path, mutant: Mutant) -> list[str]:
    # Not of the checkout, where somebody may go on working.
    source = (copy / mutant.path).read_bytes()
    before, after = source.decode(), mutant.applied_to(source).decode()
    changed = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return list(changed)[2:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
