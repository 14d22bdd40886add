"""The result of each table's last comparison, stored in the lake for readers of the state and for
the planning of comparisons.

There is one file per table and topic, `_lakesplice/verified/<table>/<topic>/<number>.json`: each
result is a new file, as everything in a lake, and the previous one is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict

from lakesplice.model.moments import EpochMs
from lakesplice.model.progress.verified import ComparisonOutcome, LastResult
from lakesplice.table.driver.last_file import LastFile
from lakesplice.table.protocol.ports import Store

_FOLDER = "_lakesplice/verified"
_WORST_FIRST = (
    ComparisonOutcome.DIFFERENT,
    ComparisonOutcome.UNSETTLED,
    ComparisonOutcome.NOT_COMPARED,
    ComparisonOutcome.EQUAL,
)


def keep_result(lake: Store, result: LastResult) -> None:
    """Store a result in place of the previous one. Blocks; raises the store's errors."""
    _place(lake, result.folder, result.topic).write(json.dumps(asdict(result)).encode())


def last_results(lake: Store) -> tuple[LastResult, ...]:
    """Return all results, one per table and topic. Blocks: a listing, and a read for each."""
    places = {path.rpartition("/")[0] for path in lake.list(f"{_FOLDER}/")}
    found = []
    for folder in sorted(places):
        data = LastFile(lake, folder).read()
        with suppress(ValueError, KeyError, TypeError):
            read = json.loads(data or b"")
            found.append(LastResult(**{**read, "outcome": ComparisonOutcome(read["outcome"])}))
    return tuple(found)


def worst_by_folder(results: Iterable[LastResult]) -> Mapping[str, LastResult]:
    """Return for each table the worst result of its topics; of equal ones the oldest."""
    found: dict[str, LastResult] = {}
    for result in sorted(results, key=_badness, reverse=True):
        found[result.folder] = result
    return found


def _badness(result: LastResult) -> tuple[int, EpochMs]:
    return _WORST_FIRST.index(result.outcome), result.ended_ms


def _place(lake: Store, folder: str, topic: str) -> LastFile:
    return LastFile(lake, f"{_FOLDER}/{folder}/{topic}")
