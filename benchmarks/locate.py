"""Locating 100,000 keys in a row index of 20 M entries and of 1 M, beside three peers.

Run: python -m benchmarks.locate [--large N] [--small N] [--keys N] [--repeats N] [--folder DIR].
Seeded. Each measurement is a process of its own that opens the runs as a worker does (checksums
compared, files mapped into memory), then locates fresh keys per repeat, large and small in turn;
nine keys of ten are known, rising by hash as a fold leaves them. Times are medians. With the most
runs allowed each run is half as large as the one before it, so that most keys ask every run.

The peers hold the same hashes and addresses in memory: a plain numpy.searchsorted over one sorted
array, a hash join by Polars, and one by DuckDB, each on one thread like ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lakesplice.formats.rowindex import Entries
from lakesplice.model.arrays import KeyHashes
from lakesplice.model.manifest import FileRef, RunRef
from lakesplice.planning.rows.index_merge import RUNS_MAX
from lakesplice.planning.rows.locate import UNKNOWN, locate
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.index_runs import RunCache, write_run

SEED = 20
GROUPS = 500
ROWS_PER_BLOCK = 1 << 20
RATIO_MAX = 1.5
MEMORY_MAX = 1 << 30

Words = NDArray[np.uint64]


def hashes(entries: int) -> tuple[Words, Words]:
    """All keys of an index of that size, rising by `high`."""
    chance = np.random.default_rng(SEED + entries)
    high = np.sort(chance.integers(0, 1 << 64, entries, np.uint64))
    return high, chance.integers(0, 1 << 64, entries, np.uint64)


def member_of(high: Words, runs: int) -> NDArray[np.int64]:
    """Which run each key is in: half in the oldest, a quarter in the next, and so on."""
    chance = np.random.default_rng(SEED)
    return np.minimum(chance.geometric(0.5, len(high)) - 1, runs - 1)


def write_index(folder: Path, entries: int, runs: int) -> list[dict[str, Any]]:
    """Write an index of `runs` runs, oldest first; returns what the manifest would say."""
    high, low = hashes(entries)
    member = member_of(high, runs)
    refs = []
    for number in range(runs):
        own = np.flatnonzero(member == number)
        path = f"{entries}-{runs}-{number}.run"
        blocks = _blocks(high, low, own)
        ref = write_run(LocalStore(folder), path, blocks, len(own))
        refs.append(
            {"path": path, "bytes": ref.file.bytes, "sum": ref.file.checksum, "entries": len(own)}
        )
    return refs


def _blocks(high: Words, low: Words, own: NDArray[np.int64]) -> Iterator[Entries]:
    for start in range(0, len(own), ROWS_PER_BLOCK):
        at = own[start : start + ROWS_PER_BLOCK]
        yield Entries(high[at], low[at], at % GROUPS, at // GROUPS)


def probes(entries: int, keys: int, repeats: int) -> list[tuple[Words, Words, NDArray[np.int64]]]:
    """Per repeat the hashes to locate and the rows they have, -1 for unknown ones."""
    high, low = hashes(entries)
    drawn = []
    for repeat in range(repeats):
        chance = np.random.default_rng((SEED, entries, repeat))
        known = chance.integers(0, entries, keys - keys // 10)
        others = chance.integers(0, 1 << 64, keys // 10, np.uint64)
        wanted = np.concatenate((high[known], others))
        rest = np.concatenate((low[known], others))
        rows = np.concatenate((known, np.full(len(others), UNKNOWN)))
        order = np.argsort(wanted, kind="stable")
        drawn.append((wanted[order], rest[order], rows[order]))
    return drawn


def worker(folder: Path, indexes: list[Any], repeats: int) -> dict[str, Any]:
    """Measure inside a fresh process; `indexes` are (entries, refs) of the large and the small."""
    live = np.arange(GROUPS)
    store, cache = LocalStore(folder), RunCache()
    opened, asked = [], []
    for entries, refs in indexes:
        # The expected keys were drawn by the parent: a worker doesn't hold the whole index.
        asked.append(np.load(folder / f"probes-{entries}.npy"))
        started = time.perf_counter()
        runs = cache.open_runs(
            store,
            [RunRef(FileRef(r["path"], r["bytes"], r["sum"]), r["entries"]) for r in refs],
        )
        opened.append((runs, time.perf_counter() - started))
    before = memory()
    seconds: list[list[float]] = [[], []]
    for repeat in range(-1, repeats):
        for which, (runs, _) in enumerate(opened):
            high, low, rows = asked[which][repeat]
            started = time.perf_counter()
            group, row = locate(runs, KeyHashes(high, low), live)
            took = time.perf_counter() - started
            found = np.where(group == UNKNOWN, UNKNOWN, row * GROUPS + group)
            if not (found == rows.view(np.int64)).all():
                raise SystemExit("a key was located at a wrong address")
            if repeat >= 0:
                seconds[which].append(took)
    return {
        "seconds": seconds,
        "open": [took for _, took in opened],
        "before": before,
        "after": memory(),
    }


def memory() -> dict[str, int]:
    """Resident memory of the process in bytes: its own, and pages of mapped files."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(lines[name].split()[0]) << 10 for name in ("RssAnon", "RssFile", "VmHWM")}


def peers(folder: Path, entries: int, repeats: int) -> dict[str, list[float]]:
    """Measure the peers on one index, inside a fresh process."""
    import duckdb
    import polars as pl

    high, low = hashes(entries)
    asked = np.load(folder / f"probes-{entries}.npy")
    held = pl.DataFrame({"high": high, "low": low, "row": np.arange(entries)})

    def searchsorted(wanted: Words, rest: Words) -> NDArray[np.int64]:
        at = np.minimum(np.searchsorted(high, wanted), entries - 1)
        return np.where((high[at] == wanted) & (low[at] == rest), at, UNKNOWN)

    def polars_join(wanted: Words, rest: Words) -> NDArray[np.int64]:
        keys = pl.DataFrame({"high": wanted, "low": rest})
        joined = keys.join(held, on=["high", "low"], how="left", maintain_order="left")
        return joined["row"].fill_null(UNKNOWN).to_numpy()

    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    connection.register("held_frame", held.to_arrow())
    connection.execute("CREATE TABLE held AS SELECT * FROM held_frame")

    def duckdb_join(wanted: Words, rest: Words) -> NDArray[np.int64]:
        keys = pl.DataFrame({"place": np.arange(len(wanted)), "high": wanted, "low": rest})
        connection.register("keys", keys.to_arrow())
        query = "SELECT place, held.row FROM keys JOIN held USING (high, low)"
        answer = connection.execute(query).fetchnumpy()
        found = np.full(len(wanted), UNKNOWN)
        found[answer["place"]] = answer["row"]
        return found

    results = {}
    for peer in (searchsorted, polars_join, duckdb_join):
        results[peer.__name__] = [
            _timed(peer, *asked[repeat]) for repeat in range(-1, min(repeats, 5))
        ][1:]
    return results


def _timed(
    peer: Callable[[Words, Words], NDArray[np.int64]], high: Words, low: Words, rows: Words
) -> float:
    started = time.perf_counter()
    found = peer(high, low)
    took = time.perf_counter() - started
    if not (found == rows.view(np.int64)).all():
        raise SystemExit(f"{peer.__name__} located a key at a wrong address")
    return took


def in_process(task: str, *arguments: object) -> Any:
    """Run `worker` or `peers` in a fresh process, on one thread, and return its answer."""
    command = [sys.executable, "-m", "benchmarks.locate", "--task", json.dumps([task, *arguments])]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measure(folder: Path, large: int, small: int, keys: int, repeats: int) -> bool:
    """Print all figures; return whether they are within their limits."""
    for entries in (large, small):
        drawn = [np.stack((h, w, r.view(np.uint64))) for h, w, r in probes(entries, keys, repeats)]
        np.save(folder / f"probes-{entries}.npy", np.stack(drawn))
    within = True
    print(f"locating {keys:,} keys, median of {repeats}, one thread")
    for runs in (1, RUNS_MAX):
        indexes = [(entries, write_index(folder, entries, runs)) for entries in (large, small)]
        answer = in_process("worker", str(folder), indexes, repeats)
        many, few = (statistics.median(seconds) for seconds in answer["seconds"])
        own, mapped = answer["after"]["RssAnon"], answer["after"]["RssFile"]
        within = within and many <= RATIO_MAX * few and own + mapped < MEMORY_MAX
        print(
            f"{runs} run(s): {large:,} entries {many * 1e3:.1f} ms, {small:,} {few * 1e3:.1f} ms, "
            f"ratio {many / few:.2f} (at most {RATIO_MAX}); opened and verified in "
            f"{answer['open'][0]:.2f} s; memory {own >> 20} MiB own + {mapped >> 20} MiB of "
            f"mapped files (under {MEMORY_MAX >> 20})"
        )
        for _, refs in indexes:
            for ref in refs:
                (folder / ref["path"]).unlink()
    for entries in (large, small):
        for peer, seconds in in_process("peers", str(folder), entries, repeats).items():
            print(f"peer {peer}: {entries:,} entries {statistics.median(seconds) * 1e3:.1f} ms")
    return within


def main() -> None:
    """Measure as the command line says; the exit code tells whether the limits were kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, default=20_000_000)
    parser.add_argument("--small", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="where to put some 1.5 GB for the while")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        task, folder, *arguments = json.loads(given.task)
        run: Callable[..., Any] = worker if task == "worker" else peers
        print(json.dumps(run(Path(folder), *arguments)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        kept = measure(Path(folder), given.large, given.small, given.keys, given.repeats)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
