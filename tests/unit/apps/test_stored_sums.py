"""The stored sums of an unfinished verification."""

from __future__ import annotations

import json
from pathlib import Path

from lakesplice.apps.verifying.source_sums import SourceSums
from lakesplice.apps.verifying.stored_sums import FilePlace, StoredSums
from lakesplice.planning.source_rows.checksums import BucketSums
from lakesplice.testing.doubles import FixedClock


def test_sums_are_stored_every_five_seconds_and_at_the_end(tmp_path: Path) -> None:
    clock, place = FixedClock(), FilePlace(tmp_path / "sums.json")
    kept, sums = StoredSums(place, clock), SourceSums(BucketSums())
    stored = []
    for seconds, done in ((5, False), (4, False), (1, False), (4, False), (0, True)):
        clock.advance(seconds)
        sums.rows, sums.done = sums.rows + 1, done
        kept.keep(sums)
        stored.append(json.loads(place.read() or b"null")["sums"]["rows"])
    assert stored == [1, 1, 3, 3, 5]
