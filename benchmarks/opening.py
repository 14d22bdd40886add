"""How long a table takes to open after many commits.

Run: python -m benchmarks.opening [--commits N] [--folder FOLDER] [--out FILE]

A table that is fed by hand gets one commit after another, by the code that makes them: UPSERTs of a
changed row each, and a SPLICE after each eighth. Their deltas and base files are links to the first
ones, since an opening reads none of them. The table keeps all its versions, so its log grows with
each commit. After 100, 1,000, 10,000 and so on it is opened in turn by Lakesplice and by deltalake,
which is the peer, with ten commits behind the newest checkpoint. Medians are of milliseconds of the
clock and of the processor.

deltalake makes the checkpoints, and lists the log for each. So of a thousand commits only the last
few get one every twenty commits, as in a table that is fed by hand, and the others get one in all:
an opening reads the newest one alone. `--folder` may be one in memory (/dev/shm), where commits are
faster; openings read from memory either way.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from lakesplice import Table
from lakesplice.model.manifest import FileRef
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import log_keeper
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.by_hand.upserts.upsert_request import next_state
from lakesplice.table.protocol.commit import Committed, commit
from lakesplice.table.protocol.intents import Splice, Upsert
from lakesplice.table.protocol.layout import base_path, delta_path
from lakesplice.table.protocol.new_files import NewFile
from lakesplice.table.protocol.snapshot import open_snapshot

_ROWS, _COMPACTED_EVERY, _OPENINGS, _FIRST = 1_000, 8, 31, 100
# Checkpoints: how often, except among so many commits before the last ones; how many are behind it.
_CHECKPOINT_EVERY, _LAST, _BEHIND = 20, 1_000, 10
_SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64())])


class Fed:
    """A table of 1,000 rows that gets one small commit after another.

    The first delta and its base file are written by `upsert`. Later commits name links to these, so
    each of them has files of its own; what is committed, and how, is as in `upsert` and `compact`.
    """

    def __init__(self, root: Path) -> None:
        self._root, self._store = root, LocalStore(root)
        self._clock, self._entropy = SystemClock(), SystemEntropy()
        ids = range(_ROWS)
        table = Table.create(root, pa.table({"id": ids, "n": ids}, schema=_SCHEMA), key=["id"])
        table.upsert(pa.table({"id": [0], "n": [1]}, schema=_SCHEMA), merge=False)
        self._snapshot = open_snapshot(self._store)
        (self._delta,) = self._snapshot.manifest.deltas
        self._keeper, self._checkpoint = log_keeper(self._store), 0

    @property
    def commits(self) -> int:
        """How many it has."""
        return self._snapshot.version + 1

    def grow(self, commits: int) -> None:
        """Commit until there are so many, and ten behind a checkpoint that is then the newest."""
        while self.commits < commits or self._snapshot.version - self._checkpoint != _BEHIND:
            self._commit(self._upsert())
            if len(self._snapshot.manifest.deltas) == _COMPACTED_EVERY:
                self._commit(self._splice())
            often = self.commits > commits - _LAST
            if self._snapshot.version - self._checkpoint >= (_CHECKPOINT_EVERY if often else _LAST):
                self._checkpoint = self._snapshot.version
                self._keeper.checkpoint(self._checkpoint)

    def _commit(self, intent: Upsert | Splice) -> None:
        done = commit(self._store, self._snapshot, intent, clock=self._clock, entropy=self._entropy)
        assert isinstance(done, Committed), done
        self._snapshot = done.snapshot

    def _upsert(self) -> Upsert:
        manifest = self._snapshot.manifest
        before, file = manifest.upserts, self._linked(self._delta.file, delta_path(self._entropy))
        assert before is not None
        return Upsert(
            manifest.generation,
            planned_on=self._snapshot.version,
            read=before.position,
            upserts=next_state(before, self.commits, None, has_deletes=False),
            schema_version=manifest.schema.version,
            addressed_groups=frozenset(self._delta.waiting),
            deltas=(replace(self._delta, file=file),),
            counts={"updated": 1},
        )

    def _splice(self) -> Splice:
        manifest = self._snapshot.manifest
        (base,) = manifest.files.values()
        path = base_path(base.segments[0].group, base.splices + 1, self._entropy)
        self._link(base.path, path)
        new = replace(base, path=path, splices=base.splices + 1)
        return Splice(
            manifest.generation,
            {base.path: NewFile(new, self._snapshot.log.adds[base.path].stats or "")},
            {delta.file.path: frozenset(delta.waiting) for delta in manifest.deltas},
            {"changes": len(manifest.deltas)},
            self._snapshot.version,
            manifest.schema.version,
        )

    def _linked(self, file: FileRef, path: str) -> FileRef:
        self._link(file.path, path)
        return replace(file, path=path)

    def _link(self, path: str, new: str) -> None:
        (self._root / new).hardlink_to(self._root / path)


def opening(root: Path, commits: int) -> list[dict[str, float]]:
    """Make so many commits, and return what opening took after powers of ten of them."""
    fed, found, due = Fed(root), list[dict[str, float]](), _FIRST
    while due <= commits:
        began = time.perf_counter()
        fed.grow(due)
        files = sum(1 for _ in (root / "_delta_log").iterdir())
        taken = _opened({"ours": lambda: Table.open(root), "deltalake": lambda: DeltaTable(root)})
        found.append({"commits": fed.commits, "log_files": files, **taken})
        print(found[-1], f"made in {time.perf_counter() - began:.0f} s", flush=True)
        due *= 10
    return found


def _opened(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Milliseconds of the clock and of the processor, medians of openings in turn."""
    taken: dict[str, list[float]] = {}
    for turn in range(_OPENINGS + 1):
        for name, work in works.items():
            clock, processor = time.perf_counter(), time.process_time()
            work()
            if turn:
                clock, processor = time.perf_counter() - clock, time.process_time() - processor
                taken.setdefault(f"{name}_ms", []).append(1_000 * clock)
                taken.setdefault(f"{name}_processor_ms", []).append(1_000 * processor)
    return {name: round(statistics.median(values), 2) for name, values in taken.items()}


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the table is made; a temporary folder")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-opening-", dir=args.folder) as work:
        found = opening(Path(work) / "table", args.commits)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
